"""A log whose queries attack the page that shows them, and the report of its release."""

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.attacks import Estimate, Finding, Findings, Skipped
from queryveil.assess.evaluation import Evaluation, Measured
from queryveil.assess.measures import retention
from queryveil.assess.policy import Criterion, Judgement
from queryveil.claims import Verdict
from queryveil.reports import Report, release_page
from queryveil.reports.examples import Example
from queryveil.verification.verifier import Verification

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>alert(3)</script>",
    "javascript:alert(4)",
    "abc \u202egnp.exe\u2066 def",
    "{{ 7 * 7 }} {% raw %}",
    "<!-- <svg onload=alert(5)>",
    "' onmouseover='alert(6)",
]
FEW = ["zebrafish quorum", "xylophone nebula"]
"""Released, but issued by few."""


def hostile_log(users=40):
    rows = [(f"u{u}", query) for query in HOSTILE for u in range(users)]
    rows += [(f"u{u}", query) for query in FEW for u in range(5)]
    rows += [(f"u{u}", f"kept secret{u}") for u in range(users)]
    return qv.read_log(pa.table({"user": [user for user, _ in rows], "query": [query for _, query in rows]}))


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    """A log, its release, and the report of it: the file, and what it tells."""
    log = hostile_log()
    release = qv.Equality(k=3).anonymize(log)
    path = tmp_path_factory.mktemp("reports") / "report.html"
    return log, release, path, qv.report(release, log, path)


def made_up(method="equality", *, holds=True, text="It counts right."):
    """What a report could tell, without the time that it takes to find out."""
    finding = Finding(
        "record_linkage", "", text, "share", Estimate(0.4, 0.3, 0.5), 0.1, text,
        Estimate(0.12, 0.1, 0.2), text, 50, beside=text,
    )  # fmt: skip
    measured = (Measured("events_kept", "", 0.25, 1.0), Measured("completion", text, 0.2, 0.5, why=text))
    return Report(
        Verification((Verdict(text, holds, None if holds else "the query 'my secret'"),)),
        Evaluation(method, {}, 0, "f", measured),
        Findings(method, (finding,), (Skipped("personal_data", text),)),
        Judgement(False, (Criterion("linkage", text, 0.09, False, 0.4, 0.5, "share", False, text),)),
    )


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """A report in which hostile text stands wherever text can stand."""
    log = hostile_log()
    release = qv.Equality(k=3).anonymize(log)
    text = " ".join(HOSTILE)
    changed = release.manifest.model_copy(update={"limits": (text,), "parameters": {"k": text}})
    path = tmp_path_factory.mktemp("reports") / "hostile.html"
    examples = [Example(query, query) for query in HOSTILE]
    path.write_text(release_page(made_up(text=text), changed, retention(release, log).bands, examples, seed=0))
    return path
