"""What several steps need of a log is made once while the log is shared, and kept no longer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.log.sharing import Shared, shared, sharing


@pytest.fixture
def log():
    return qv.read_log(pa.table({"user": ["a", "b"], "query": ["cats", "dogs"]}))


def test_what_is_shared_is_made_once_and_only_while_it_is_shared(log):
    made = []
    other = qv.read_log(pa.table({"user": ["a"], "query": ["cats"]}))
    for _ in range(2):
        shared(log, "a", lambda: made.append("alone"))
    with sharing(log), sharing(log):
        assert shared(log, "a", lambda: made.append("once") or 1) == shared(log, "a", lambda: 2)
        shared(other, "a", lambda: made.append("other"))
    shared(log, "a", lambda: made.append("after"))
    assert made == ["alone", "alone", "once", "other", "after"]


def test_different_keys_are_different_things(log):
    with sharing(log):
        assert shared(log, ("key", 1), object) is not shared(log, ("key", 2), object)


def test_nothing_is_kept_after_an_error(log):
    def fails():
        with sharing(log):
            shared(log, "key", object)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (log.kept.sharers, log.kept.made) == (0, {})


def test_what_could_not_be_made_is_tried_again(log):
    with sharing(log):
        with pytest.raises(ZeroDivisionError):
            shared(log, "key", lambda: 1 / 0)
        assert shared(log, "key", lambda: 1) == 1


def test_threads_that_ask_at_once_get_the_same(log):
    start = threading.Barrier(4)

    def ask(_):
        start.wait()
        return shared(log, "key", object)

    with sharing(log), ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1


def test_what_is_made_from_another_log_is_shared_while_that_is(log):
    other = qv.read_log(pa.table({"user": ["a"], "query": ["cats"]}))
    other.kept = Shared(log.kept)
    assert shared(other, "key", object) is not shared(other, "key", object)
    with sharing(log):
        with sharing(other):
            first = shared(other, "key", object)
        assert shared(other, "key", object) is first, "it stays as long as the log that it was made from is shared"
    assert shared(other, "key", object) is not first
