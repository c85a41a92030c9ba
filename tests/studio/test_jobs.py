"""Long work: one after the other, shown, cancelled, and never ended by an error."""

import threading

import pytest

import queryveil as qv
from queryveil.errors import QueryveilError, StoppedError
from queryveil.studio.jobs import Jobs
from tests.strategies import table


@pytest.fixture
def jobs():
    found = Jobs()
    yield found
    found.close()


def test_jobs_run_one_after_the_other(jobs):
    order, go = [], threading.Event()
    jobs.start("a", "A", lambda update: (go.wait(10), order.append("a")))
    jobs.start("b", "B", lambda update: order.append("b"))
    assert [job.state for job in jobs.all] == ["waiting", "running"] or jobs.all[0].state == "waiting"
    go.set()
    jobs.wait()
    assert order == ["a", "b"]
    assert {job.state for job in jobs.all} == {"done"}


def test_the_same_work_is_not_begun_twice(jobs):
    go = threading.Event()
    first = jobs.start("a", "A", lambda update: go.wait(10))
    assert jobs.start("a", "A", lambda update: None) is first
    go.set()
    jobs.wait()
    assert jobs.start("a", "A", lambda update: None) is not first


def test_progress_is_shown_and_every_change_counts(jobs):
    seen, go = [], threading.Event()

    def work(update):
        update(12_345)
        seen.append((job.now, jobs.version))
        update("next")
        seen.append((job.now, jobs.version))
        go.wait(10)

    job = jobs.start("a", "A", work)
    go.set()
    jobs.wait()
    assert [text for text, _ in seen] == ["12,345 rows", "next"]
    assert seen[0][1] < seen[1][1] < jobs.version


def test_work_is_cancelled_at_its_next_step(jobs):
    begun = threading.Event()

    def work(update):
        begun.set()
        for _ in range(10_000):
            update("step")
            threading.Event().wait(0.01)

    job = jobs.start("a", "A", work)
    waiting = jobs.start("b", "B", lambda update: None)
    assert begun.wait(10)
    jobs.cancel(waiting.id)
    jobs.cancel(job.id)
    jobs.wait()
    assert (job.state, waiting.state) == ("cancelled", "cancelled")


def test_a_method_without_steps_is_cancelled_at_its_next_statement_and_the_log_stays_usable(jobs):
    log = qv.read_log(table([]).from_pydict({"user": ["a", "b", "c"] * 9, "query": ["x", "x", "y"] * 9}))
    begun, go, ends = threading.Event(), threading.Event(), []

    def work(update):
        begun.set()
        go.wait(10)
        try:
            qv.Equality(k=2).anonymize(log, seed=1)
        except StoppedError:
            ends.append("stopped")
            raise

    job = jobs.start("a", "A", work)
    assert begun.wait(10)
    jobs.cancel(job.id)
    go.set()
    jobs.wait()
    assert (job.state, ends) == ("cancelled", ["stopped"])
    assert qv.Equality(k=2).anonymize(log, seed=1).manifest.counts.queries == 1


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (QueryveilError("One clear sentence."), "One clear sentence."),
        (MemoryError("my secret"), "There is not enough memory for this."),
        (ValueError("my secret"), "This is a bug in queryveil (ValueError); QUERYVEIL_DEBUG=1 shows where."),
    ],
)
def test_an_error_is_one_sentence_and_the_next_job_runs(jobs, error, sentence):
    def work(update):
        raise error

    job = jobs.start("a", "A", work)
    other = jobs.start("b", "B", lambda update: None)
    jobs.wait()
    assert (job.state, job.error, other.state) == ("failed", sentence, "done")
