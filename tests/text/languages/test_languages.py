"""The registry of languages, and what is true of each."""

import pickle

import pyarrow as pa
import pytest

from queryveil.errors import QueryveilError
from queryveil.text import LANGUAGES, Language, language
from queryveil.text.cutting import CHARACTERS
from queryveil.text.scripts import bit

UNION = "bg cs da de el en es et fi fr ga hr hu it lt lv mt nl pl pt ro sk sl sv"


@pytest.mark.parametrize("id", LANGUAGES)
def test_a_language_is_found_by_its_id_and_can_be_sent_to_a_worker(id):
    found = language(id)
    assert found.id == id
    assert pickle.loads(pickle.dumps(found)).stop_words == found.stop_words


@pytest.mark.parametrize("id", LANGUAGES)
def test_stop_words_are_single_words_of_the_language(id):
    found = language(id)
    words = sorted(found.stop_words)
    if CHARACTERS in found.dictionaries(bit(*found.scripts)).values():
        pytest.skip("its dictionary is not installed")
    assert found.words(pa.array(words)).text.to_pylist() == words


def test_english_is_the_default():
    assert language() is language("en")


def test_an_unknown_language_is_refused_with_those_there_are():
    with pytest.raises(QueryveilError, match="There is no language 'xyz'; there are bg, cs"):
        language("xyz")


def test_the_name_of_a_language_is_answered_with_its_code():
    with pytest.raises(QueryveilError, match="There is no language 'German'; did you mean 'de'"):
        language("German")


@pytest.mark.parametrize(("name", "id"), [("deutsch", "de"), ("Français", "fr"), ("中文", "zh"), ("nederlands", "nl")])
def test_what_a_language_calls_itself_is_answered_with_its_code(name, id):
    with pytest.raises(QueryveilError, match=f"did you mean '{id}'"):
        language(name)


def test_stop_words_count_without_accents_and_in_greek_capitals_too():
    assert {"της", "τησ", "αυτής", "αυτης", "αυτησ"} <= language("el").stop_words
    assert {"být", "ještě", "jeste"} <= language("cs").stop_words
    assert "byt" not in language("cs").stop_words  # a flat
    assert "sara" not in language("it").stop_words  # a name
    assert all(word.isascii() for word in language("en").stop_words)


def test_both_apostrophes_give_the_same_stem():
    for code, word in (("fr", "l'hôtel"), ("it", "dell'arte")):
        assert language(code).stem(pa.array([word])) == language(code).stem(pa.array([word.replace("'", "’")]))


def test_several_languages_have_the_stop_words_of_all_and_the_stems_of_their_scripts():
    both = language("de", "el", "en", "de")
    assert both.id == "de,el,en"
    assert {"und", "και", "the"} <= both.stop_words
    assert both.countries[:4] == ("DE", "AT", "BE", "LU")
    assert both.stem_phrases(pa.array(["häuser", "αυτοκίνητα", "7"])).to_pylist() == ["haus", "αυτοκινητ", "7"]
    assert pickle.loads(pickle.dumps(both)).stem(pa.array(["häuser"])).to_pylist() == ["haus"]


def test_every_language_of_the_union_has_its_stop_words_and_most_have_stems():
    union = set(UNION.split())
    assert union <= set(LANGUAGES)
    assert all(len(language(id).stop_words) >= 50 for id in union)
    plain = Language("xx", "None", frozenset()).stem
    assert {id for id in union if language(id).stem is plain} == {"bg", "hr", "lv", "mt", "sk", "sl"}


def test_a_language_without_stems_leaves_phrases_as_they_are():
    plain = Language("xx", "None", frozenset())
    assert plain.stem_phrases(pa.array(["water sports", ""])).to_pylist() == ["water sports", ""]


@pytest.mark.parametrize("id", ["en", "zh", "ja", "ko", "th"])
def test_a_mask_is_no_word_in_any_language(id):
    assert language(id).words(pa.array(["tea <email>", "<name_place>"])).text.to_pylist() == ["tea"]
