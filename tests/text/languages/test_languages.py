"""The registry of languages, and what is true of each."""

import pickle

import pyarrow as pa
import pytest

from queryveil.errors import QueryveilError
from queryveil.text import LANGUAGES, Language, language


@pytest.mark.parametrize("id", LANGUAGES)
def test_a_language_is_found_by_its_id_and_can_be_sent_to_a_worker(id):
    found = language(id)
    assert found.id == id
    assert pickle.loads(pickle.dumps(found)).stop_words == found.stop_words


@pytest.mark.parametrize("id", LANGUAGES)
def test_stop_words_are_single_words_of_the_language(id):
    found = language(id)
    words = sorted(found.stop_words)
    assert found.words(pa.array(words)).text.to_pylist() == words


def test_english_is_the_default():
    assert language() is language("en")


def test_an_unknown_language_is_refused_with_those_there_are():
    with pytest.raises(QueryveilError, match="There is no language 'tlh'; there are en"):
        language("tlh")


def test_a_language_without_stems_leaves_phrases_as_they_are():
    plain = Language("xx", "None", frozenset())
    assert plain.stem_phrases(pa.array(["water sports", ""])).to_pylist() == ["water sports", ""]


def test_a_mask_is_no_word_however_a_language_cuts():
    seen = []
    Language("xx", "None", frozenset(), cut=seen.append).words(pa.array(["tea <email>"]))
    assert seen[0].to_pylist() == ["tea  "]
