"""Korean: words between blanks, with the particles after a noun cut off.

A particle is cut off only if at least two syllables are left and it has the form that goes with the last of them: 를
after a vowel and 을 after a consonant. 가, 이, 의 and 도 are left where they are, because many nouns end like them,
except behind another particle: 에서의. Of the nouns that end like a particle, only a few dozen are known.
"""

import re
from collections.abc import Sequence

from queryveil.text.cutting import Cutter
from queryveil.text.languages import Cues, Language

_FIRST, _LAST, _FINALS = 0xAC00, 0xD7A3, 28
_OPEN = "".join(chr(syllable) for syllable in range(_FIRST, _LAST + 1, _FINALS))
"""The syllables that end in a vowel."""
_R = "".join(chr(syllable + 8) for syllable in range(_FIRST, _LAST + 1, _FINALS))
"""The syllables that end in the consonant ㄹ, which goes with 로 as vowels do."""
_ANY = "에서|에게서|에게|한테|까지|부터|처럼|보다|마다|조차|밖에|에"
_AFTER_VOWEL = "를|는|와|랑"
_AFTER_CONSONANT = "을|은|과|이랑"
_AFTER_OTHERS = "는|의|도|만"
_PARTICLE = re.compile(
    f"(?<=..)(?:((?<=[{_OPEN}{_R}])로|(?<=[^{_OPEN}])으로|{_ANY})({_AFTER_OTHERS})?"
    f"|(?<=[{_OPEN}])(?:{_AFTER_VOWEL})|(?<=[^{_OPEN}])(?:{_AFTER_CONSONANT}))$"
)
_LIKE_PARTICLES = """
도로 대로 제로 피로 미로 수로 가로 세로 철로 활로 을지로 퇴계로 충무로 스스로 서로 바로 새로 따로 홀로
사랑 자랑 노랑 파랑 학과 인과 년과 안과 결과 통과 성과 경과 젊은 좋은 많은 작은 넓은 높은
"""
_NOUNS = tuple(_LIKE_PARTICLES.split())
"""Ends of words that look like particles."""

_STOP_WORDS = f"""
{" ".join((_ANY + "|" + _AFTER_VOWEL + "|" + _AFTER_CONSONANT).split("|"))} 로 으로
은 는 이 가 을 를 의 도 만 및 또는 그리고 그러나 하지만 그 저 것 수 등 나 너 우리 저희 무엇 뭐 어떻게 왜 누구 어디 언제
있는 없는 하는 있다 없다 하다 안 못
"""


def _without_particles(run: str) -> str:
    found = None if run.endswith(_NOUNS) else _PARTICLE.search(run)
    if found is None:
        return run
    parts = found.groups("") if found[2] else (found[0],)
    return " ".join((run[: found.start()], *parts))


def _words(runs: Sequence[str]) -> list[str]:
    cut = {run: _without_particles(run) for run in set(runs)}  # between blanks there are few different ones
    return [cut[run] for run in runs]


_PHONES = "전화 전화번호 휴대폰 번호 연락처 팩스"

LANGUAGE = Language(
    id="ko",
    label="Korean",
    stop_words=frozenset(_STOP_WORDS.split()),
    scripts=("hangul",),
    countries=("KR",),
    cutter=Cutter("Korean", ("hangul",), _words),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
