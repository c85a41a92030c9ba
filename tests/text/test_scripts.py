import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.text.scripts import SCRIPTS, bit, characters, scripts_of
from tests.oracles.scripts import script

LETTERS = "aZéßøαΩжЯ北京あアㄱ한ไทยລາວខ្មែរမြန်عربيعשלוםհայქართहिन्दीதமிழ் 7-+'\u0301"


@given(st.lists(st.text(LETTERS, max_size=8), max_size=6))
def test_scripts_are_those_of_the_letters(texts):
    found = scripts_of(pa.array(texts, pa.string())).tolist()
    for text, bits in zip(texts, found, strict=True):
        named = {name for name in map(script, text) if name is not None}
        marks = {name for name in SCRIPTS if bits & bit(name)} - named  # a mark of a script counts for it too
        assert named <= {name for name in SCRIPTS if bits & bit(name)}
        assert all(re.search(f"[{characters(name)}]", text) for name in marks)


def test_every_common_letter_has_its_script():
    ranges = ((0x41, 0x24F), (0x370, 0x52F), (0xE01, 0xE30), (0x3041, 0x30FF), (0x4E00, 0x4E50), (0xAC00, 0xAC50))
    for first, last in ranges:
        for character in map(chr, range(first, last + 1)):
            named = script(character)
            if named is not None:
                assert scripts_of(pa.array([character]))[0] == bit(named), character


def test_what_has_no_letter_has_no_script():
    assert scripts_of(pa.array(["", "12 + 3", None])).tolist() == [0, 0, 0]
