"""Japanese: words of MeCab with the dictionary UniDic."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from queryveil.text.cutting import Cutter
from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
の に は を が と も で へ や か な ね よ から より だけ など ばかり ほど くらい しか て た だ です ます ない
する し さ れる られる せる いる ある なる こと もの ため よう そう これ それ あれ どれ この その あの どの ここ そこ
あそこ どこ 何 誰 いつ なぜ どう 私 僕 彼 彼女 お ご
"""


@cache
def _tagger() -> Any:
    import unidic_lite
    from fugashi import GenericTagger

    return GenericTagger(f"-r {unidic_lite.DICDIR}/mecabrc -d {unidic_lite.DICDIR} -Owakati")


def _words(runs: Sequence[str]) -> list[str]:
    parse = _tagger().parse
    return [parse(run) for run in runs]


_PHONES = "電話 電話番号 携帯 携帯番号 番号 連絡先 ファックス"

LANGUAGE = Language(
    id="ja",
    label="Japanese",
    stop_words=frozenset(_STOP_WORDS.split()),
    scripts=("han", "kana"),
    countries=("JP",),
    cutter=Cutter("Japanese", ("han", "kana"), _words, ("fugashi", "unidic_lite")),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
