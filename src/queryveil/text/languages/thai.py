"""Thai: the longest words of a dictionary, as PyThaiNLP finds them."""

from collections.abc import Sequence

from queryveil.text.cutting import Cutter
from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
ที่ ของ และ ใน เป็น มี ได้ ให้ ว่า จะ ไม่ กับ จาก การ ความ นี้ นั้น ก็ แต่ หรือ ถ้า โดย เมื่อ อยู่ ไป มา แล้ว ยัง ต้อง
คือ อะไร ไหน ทำไม อย่างไร ยังไง ใคร เท่าไหร่ ไหม ฉัน ผม คุณ เขา เธอ เรา ๆ
"""


def _words(runs: Sequence[str]) -> list[str]:
    from pythainlp.tokenize.newmm import segment

    return [" ".join(segment(run)) for run in runs]


_PHONES = "โทร โทรศัพท์ เบอร์ มือถือ"

LANGUAGE = Language(
    id="th",
    label="Thai",
    stop_words=frozenset(_STOP_WORDS.split()),
    scripts=("thai",),
    countries=("TH",),
    cutter=Cutter("Thai", ("thai",), _words, ("pythainlp",)),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
