"""Persons with a place in Chinese, Japanese and Korean: the family name comes first, and blanks are few.

A given name may be any characters, so one of these must be true:

1. The whole query is a name, a place, and words that go with people. In Chinese, the family name is a frequent one and
   the given name has characters of given names; elsewhere, both are listed.
2. A listed family name and a listed given name of two characters or more are directly beside a listed place.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, partial

from queryveil.scrubbing.lists import CITY, COMMON, FIRST, LAST, REGION, lists_of, plain_word
from queryveil.scrubbing.patterns import Finder, Span

LANGUAGES = ("zh", "ja", "ko")
_WITH_PEOPLE = {
    "zh": "电话 手机 手机号 号码 地址 住址 简历 身份证 联系方式 微信 结婚 离婚 去世 讣告 律师 医生 老师 先生 女士",
    "ja": "電話 電話番号 番号 住所 連絡先 経歴 結婚 離婚 死亡 訃報 弁護士 医師 先生 さん 氏",
    "ko": "전화번호 전화 주소 연락처 결혼 이혼 부고 변호사 의사 선생님 씨",
}
_BETWEEN = {"zh": ("的", "在"), "ja": ("の", "在住"), "ko": ("의",)}
_TOWNS = {
    "zh": ("市", "区", "县", "镇", "村"),
    "ja": ("市", "区", "町", "村", "郡", "島"),
    "ko": ("시", "구", "군", "동"),
}
_LONGEST_TEXT, _LONGEST_NAME, _LONGEST_PLACE, _LONGEST_TOWN = 24, 6, 9, 6
_FULL_GIVEN = 2


class _Known:
    """The lists of a language, in the form in which texts are looked at."""

    def __init__(self, language: str) -> None:
        kinds = lists_of((language,)).kinds
        self.language = language
        self.family = {text for text, kind in kinds.items() if kind & LAST}
        self.frequent = {text for text in self.family if kinds[text] & COMMON}
        self.given = {text for text, kind in kinds.items() if kind & FIRST}
        self.given_heads = {text[:_FULL_GIVEN] for text in self.given if len(text) >= _FULL_GIVEN}
        self.characters = {sign for text in self.given for sign in text}
        self.places = {text for text, kind in kinds.items() if kind & (CITY | REGION) and len(text) > 1}
        self.people = tuple(map(plain_word, _WITH_PEOPLE[language].split()))

    def is_name(self, text: str) -> bool:
        """Whether all of a text may be a name, next to a place and nothing else."""
        for n in (1, 2, 3):
            family, given = text[:n], text[n:]
            if family not in self.family or not given:
                continue
            if given in self.given:
                return True
            if self.language == "zh" and family in self.frequent and len(given) <= _FULL_GIVEN:
                return self.characters.issuperset(given)
        return False

    def is_place(self, text: str, *, any_town: bool = False) -> bool:
        """Whether all of a text is a place, or a place in another; `any_town`: or a town that is in no list."""
        if text in self.places or (text[-1:] in _TOWNS[self.language] and text[:-1] in self.places):
            return True
        if any_town and 2 < len(text) <= _LONGEST_TOWN and text[-1] in _TOWNS[self.language]:
            return True
        return any(text[:n] in self.places and self.is_place(text[n:], any_town=True) for n in range(2, len(text) - 1))

    def without_people(self, text: str) -> str:
        """A text without the words that go with people at its end."""
        while text.endswith(self.people):
            text = next(text.removesuffix(word) for word in self.people if text.endswith(word))
        return text

    def is_all(self, text: str) -> bool:
        """Whether all of a text is a name and a place."""
        text = self.without_people(text)
        for n in range(2, min(_LONGEST_NAME, len(text) - 2) + 1):
            if self.is_name(text[:n]) and self._is_rest(text[n:], str.removeprefix):
                return True
            if self.is_name(text[-n:]) and self._is_rest(text[:-n], str.removesuffix):
                return True
        return False

    def _is_rest(self, text: str, without: Callable[[str, str], str]) -> bool:
        """Whether what a name leaves of a query is a place, maybe with words between them."""
        for word in (*self.people, *_BETWEEN[self.language]):
            text = without(text, word)
        return len(text) > 1 and self.is_place(text, any_town=True)

    def place_length(self, text: str, at: int) -> int:
        """How long the listed place at a character is."""
        return next((n for n in range(_LONGEST_PLACE, 1, -1) if text[at : at + n] in self.places), 0)


@cache
def _known(language: str) -> _Known:
    return _Known(language)


def _names_with_places(text: str, *, languages: tuple[str, ...]) -> Iterator[Span]:
    plain = text if unicodedata.is_normalized("NFD", text) else plain_word(text)
    if "<" in text or len(plain) != len(text):
        return  # a mask, or what cannot be followed character by character
    bare = plain.replace(" ", "")
    for language in languages:
        known = _known(language)
        if len(bare) <= _LONGEST_TEXT and known.is_all(bare):
            yield 0, len(text)
        elif language != "ko":
            yield from _beside(plain, known)


def _beside(text: str, known: _Known) -> Iterator[Span]:
    for begin in range(1, len(text) - 1):
        if text[begin : begin + _FULL_GIVEN] not in known.given_heads:
            continue
        for end in (begin + 3, begin + 2):
            if end > len(text) or text[begin:end] not in known.given:
                continue
            last = begin - (text[begin - 1] == " ")
            first = next((last - n for n in (3, 2, 1) if last >= n and text[last - n : last] in known.family), -1)
            if first < 0:
                continue
            after = end + (text[end : end + 1] == " ")
            if long := known.place_length(text, after):
                yield first, after + long
            before = first - (text[first - 1 : first] == " ")
            for start in range(max(0, before - _LONGEST_PLACE), before - 1):
                if text[start:before] in known.places:
                    yield start, end
                    break


def with_name(text: str, span: Span, language: str) -> Span:
    """Where an address in a text is, with the name that stands directly before or behind it."""
    known, (start, end) = _known(language), span
    behind = re.match(r" ?([^ ]+)", text[end:])
    if behind is not None and known.is_name(known.without_people(plain_word(behind[1]))):
        end += behind.end()
    before = re.search(r"([^ ]+) ?$", text[:start])
    if before is not None and known.is_name(plain_word(before[1])):
        start = before.start()
    return start, end


def names_with_places(languages: tuple[str, ...]) -> Finder:
    """Persons with a place in texts of these languages."""
    return partial(_names_with_places, languages=languages)
