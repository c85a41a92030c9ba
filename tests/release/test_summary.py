import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.release.summary import escape, markdown, share


@given(st.text())
def test_escaped_text_has_no_markup_left(text):
    found = escape(text)
    for i, c in enumerate(found):
        if c in "`*_[]()<>&|#!":
            before = len(found[:i]) - len(found[:i].rstrip("\\"))
            assert before % 2 == 1, (text, found)
    assert all(c.isprintable() for c in found)


def test_a_hostile_parameter_stays_inert(tmp_path):
    path = tmp_path / "<script>alert(1)</script>|x".replace("/", "_")
    path.write_text("tea\n")
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))
    text = markdown(qv.Rules(allow_list=path).anonymize(log).manifest, ())
    assert "<script>" not in text


def test_shares_never_round_something_to_nothing():
    assert [share(*pair) for pair in [(0, 5), (1, 100_000), (1, 3), (99_999, 100_000), (5, 5), (0, 0)]] == [
        "0.0 %", "< 0.1 %", "33.3 %", "> 99.9 %", "100.0 %", "-",
    ]  # fmt: skip


def test_the_exact_statement_is_below_the_headline_of_a_promise():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"], "url": ["x.org", "x.org"]}))
    release = qv.Equality(k=2).anonymize(log)
    text = markdown(release.manifest, qv.verify(release, log).verdicts)
    exact = "Every released click shares its (query, url) with at least 2 users of the log."
    assert f"- **Every released click is shared by at least 2 users.** *Holds.*\n  {exact}\n" in text


def test_the_report_says_what_is_promised_and_what_is_not():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))
    release = qv.Equality(k=2).anonymize(log)
    text = markdown(release.manifest, qv.verify(release, log).verdicts)
    assert "- **Every released query was issued by at least 2 users of the log.** *Holds.*" in text
    assert "is not differential privacy" in text
    assert "| 2-4 users | 1 | 100.0 % | 2 | 100.0 % |" in text
