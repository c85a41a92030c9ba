"""Words and draws, one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queryveil.synth import draws as kernel
from queryveil.synth import words
from queryveil.synth.world import atlas

PAYLOADS = st.integers(0, (1 << 40) - 1)


def spelled(word: int) -> str:
    out = np.zeros(4 * words.LONGEST_WORD, np.uint8)
    return out[: words.spell(atlas().worlds[0], word, out, 0)].tobytes().decode("ascii")


@given(st.integers(1, 9), PAYLOADS, st.booleans(), st.integers(0, 254))
def test_no_word_is_too_long_or_blank(kind, payload, dress, slip):
    word = words.slipped(words.word_of(kind, payload), slip)
    text = spelled(words.dressed(word, True, 1) if dress else word)
    assert 0 < len(text) <= words.LONGEST_WORD
    assert text.isprintable()
    assert " " not in text


@given(st.lists(PAYLOADS, min_size=2, max_size=50, unique=True))
def test_coined_words_are_all_different(payloads):
    texts = [spelled(words.word_of(words.COINED, payload)) for payload in payloads]
    assert len(set(texts)) == len(texts)


@given(PAYLOADS, st.integers(0, 254))
def test_a_slip_is_one_letter(payload, slip):
    word = words.word_of(words.COINED, payload)
    right, wrong = spelled(word), spelled(words.slipped(word, slip))
    assert abs(len(right) - len(wrong)) <= 1
    assert wrong[0] == right[0]
    assert sorted(right) == sorted(wrong) or len(right) != len(wrong)


def test_addresses_are_dressed_words():
    word = words.word_of(words.COINED, 12345)
    bare = spelled(word)
    assert spelled(words.dressed(word, False, 0)) == f"{bare}.com"
    assert spelled(words.dressed(word, True, 2)) == f"www.{bare}.net"


@settings(deadline=None)
@given(st.integers(0, 1 << 62), st.integers(1, 1 << 30), st.floats(0.1, 0.95) | st.floats(1.02, 3), st.floats(0, 500))
def test_zipf_stays_in_its_ranks(seed, n, slope, shift):
    rng = kernel.stream(seed, 1)
    assert all(0 <= kernel.zipf(rng, n, slope, shift) < n for _ in range(20))


def test_zipf_follows_the_law():
    rng = kernel.stream(1, 2)
    counts = np.bincount([kernel.zipf(rng, 50, 1.3, 2.0) for _ in range(50_000)], minlength=50)
    edges = (np.arange(51) + 3.0) ** -0.3
    law = (edges[:-1] - edges[1:]) / (edges[0] - edges[-1])
    assert counts / counts.sum() == pytest.approx(law, abs=0.01)


def test_streams_differ_by_name():
    draws = {int(kernel.bits(kernel.stream(a, b))) for a in range(50) for b in range(50)}
    assert len(draws) == 2500


def test_site_names_are_unique():
    urls = [site.url for site in atlas().sites]
    assert len(set(urls)) == len(urls)
