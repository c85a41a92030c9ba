import pyarrow as pa

from queryveil.text import language

ENGLISH = language("en")


def test_stop_words_are_few_and_leave_what_users_mean():
    assert {"the", "of", "is"} <= ENGLISH.stop_words
    assert not {"computer", "home", "free", "new", "best"} & ENGLISH.stop_words
    assert len(ENGLISH.stop_words) < 150


def test_words_are_compared_by_their_stems():
    assert ENGLISH.stem(pa.array(["sports", "running", "new"])).to_pylist() == ["sport", "run", "new"]
    assert ENGLISH.stem_phrases(pa.array(["water sports"])).to_pylist() == ["water sport"]
