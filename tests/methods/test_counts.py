"""Tables of counts: what is published, what is hidden, and that the verifier agrees."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from tests.both import on_both_engines, on_both_engines_weekly
from tests.oracles import counts as oracle
from tests.strategies import examples

TIMES = [None, "2006-03-01 10:00:00", "2006-03-09 23:59:59", "2006-04-30 00:00:00"]
URLS = st.none() | st.sampled_from(["http://a.com", "http://b.org"])
RANKED = st.tuples(URLS, st.none() | st.integers(1, 3)).filter(lambda result: result != (None, None))
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "user": st.sampled_from([f"u{i}" for i in range(7)]),
            "query": st.sampled_from(["cat", "dog", "sea"]),
            "time": st.sampled_from(TIMES),
            "device": st.sampled_from(["phone", "desk", None]),
            "country": st.sampled_from(["NL", "US", "BE"]),
            "results": st.lists(st.tuples(RANKED, st.booleans()), max_size=3),
        }
    ),
    min_size=1,
    max_size=40,
)
COLUMNS = st.lists(
    st.sampled_from(["query", "url", "rank", "country", "device", "period"]), min_size=1, max_size=4, unique=True
)
KEEP = st.sampled_from(["frequent", "first", "random"])
LEAST = st.none() | st.integers(2, 4)


@st.composite
def settings_of_counts(draw: Any) -> dict[str, Any]:
    columns = draw(COLUMNS)
    totals = []
    if not {"url", "rank"} & set(columns):
        totals = draw(st.lists(st.sampled_from(columns), max_size=len(columns) - 1, unique=True))
    return {
        "by": columns,
        "totals": totals,
        "min_row_users": draw(st.integers(2, 4)),
        "min_query_users": draw(LEAST),
        "min_metadata_users": draw(LEAST),
        "period": draw(st.sampled_from(["day", "week", "month"])),
        "users": draw(st.sampled_from(["exact", "band"])),
        "secondary": draw(st.booleans()),
        "base": draw(st.none() | st.integers(2, 4)),
    }


def log_of(events: list[dict], *, views: bool) -> tuple[qv.QueryLog, list[oracle.Event]]:
    """A log of some events, and the events as the oracle takes them; events of the same moment are one."""
    found: dict[Any, dict] = {}
    for place, event in enumerate(events):
        whose = (event["user"], event["query"], event["time"])
        if event["time"] is None:  # one row, which is an event of its own
            event = event | {"results": [] if views else event["results"][:1]}
            whose = (*whose, place)
        found.setdefault(whose, event | {"results": []})["results"] += event["results"]
    rows, made = [], []
    for event in found.values():
        results = [(url, rank, int(views), int(clicked or not views)) for (url, rank), clicked in event["results"]]
        if views:  # no rank twice in an event
            results = list({rank if rank is not None else url: (url, rank, shown, clicked)
                            for url, rank, shown, clicked in results}.values())  # fmt: skip
        same = {name: event[name] for name in ("user", "query", "time", "device", "country")}
        for url, rank, _, clicked in results or [(None, None, 0, 0)]:
            rows.append(same | {"url": url, "rank": rank} | ({"clicked": clicked} if views else {}))
        time = None if event["time"] is None else dt.datetime.fromisoformat(event["time"])
        made.append(same | {"time": time, "results": results})
    texts = dict.fromkeys(("user", "query", "time", "device", "country", "url"), pa.string())
    schema = pa.schema([*texts.items(), ("rank", pa.int32()), *([("clicked", pa.int32())] if views else [])])
    return qv.read_log(pa.Table.from_pylist(rows, schema)), made


def order_of(log: qv.QueryLog) -> oracle.Order:
    known = {"query": log.query_text, "url": log.url_text, **log.extras}
    return lambda name, value: value if name == "rank" else known[name].to_pylist().index(value)


def rows_of(release: qv.Release, columns: list[str]) -> set:
    names = (
        "users_band" if "users_band" in release.schema.names else "users",
        "events",
        "views",
        "clicks",
        "mean_rank",
    )
    rows = release.to_arrow().to_pylist()
    made = {(row.get("total", 0), *(row.get(name) for name in (*columns, *names))) for row in rows}
    assert len(made) == len(rows)
    return made


def expected(log: qv.QueryLog, events: list[oracle.Event], parameters: dict[str, Any]) -> oracle.Table:
    least = parameters["min_row_users"]
    return oracle.counts(
        events,
        columns=tuple(parameters["by"]),
        least=least,
        query_users=parameters["min_query_users"] or least,
        metadata_users=parameters["min_metadata_users"] or least,
        period=parameters["period"],
        totals=tuple(parameters["totals"]),
        secondary=parameters["secondary"],
        order=order_of(log),
    )


@settings(max_examples=examples(60))
@given(EVENTS, settings_of_counts(), st.booleans())
def test_the_table_is_that_of_the_oracle_and_the_verifier_accepts_it(events, parameters, views):
    log, events = log_of(events, views=views)
    try:
        release = qv.Counts(**parameters).anonymize(log, seed=3)
    except qv.QueryveilError as error:
        assert any(  # noqa: PT017
            part in str(error)
            for part in ("users are left", "has only", "has no times", "not a whole", "no clicks", "no such column")
        ), error
        return
    table = expected(log, events, parameters)
    columns, totals = tuple(parameters["by"]), tuple(parameters["totals"])
    made = oracle.published(table, columns, totals, parameters["base"], parameters["users"] == "band")
    blanked = {row if log.has_results else (*row[:-2], None, None) for row in made}
    blanked = {row if log.has_views else (*row[:-3], None, *row[-2:]) for row in blanked}
    blanked = {row if "rank" not in columns else (*row[:-1], None) for row in blanked}
    blanked = {(*row[:-3], None, None, None) if totals else row for row in blanked}
    assert rows_of(release, parameters["by"]) == blanked
    found = qv.verify(release, log)
    assert found.holds, [verdict for verdict in found.verdicts if not verdict.holds]


MANY = [
    {
        "user": f"u{n % 9}",
        "query": ["cat", "dog", "sea", "x1"][n % 4 * (n % 3 > 0)],
        "time": f"2006-0{3 + n % 2}-{1 + n % 28:02} 10:00:00",
        "rank": 1 + n % 3 if n % 5 else None,
        "url": f"http://{'ab'[n % 2]}.com" if n % 5 else None,
        "country": ["NL", "US", "BE", None][n % 7 % 4],
        "device": ["phone", "desk"][n % 11 % 2],
    }
    for n in range(120)
]
MADE = pa.Table.from_pylist(MANY)
VIEWS = pa.Table.from_pylist(
    [
        row | {"url": f"http://{'abc'[rank]}.com", "rank": rank + 1, "clicked": int(n % 4 == rank)}
        for n, row in enumerate(MANY[:60])
        for rank in range(3)
    ]
)


OF_VIEWS = {"by": ["query", "url", "country", "period"], "period": "month", "min_row_users": 3}
OF_CLICKS = {"by": ["query", "country", "device"], "totals": ["country"], "base": 2, "min_row_users": 3}


def same_table(read, source, parameters):
    """The log and the release, whose table is that of a log on one machine."""
    method, log = qv.Counts(**parameters), read(source)
    release = method.anonymize(log, seed=1)
    made = release.to_arrow()
    assert made.cast(release.schema).equals(method.anonymize(qv.read_log(source), seed=1).to_arrow())
    assert len(made) > 5
    return log, release


@on_both_engines
def test_every_engine_makes_the_same_table_of_views(read):
    same_table(read, VIEWS, OF_VIEWS)


@on_both_engines_weekly
@pytest.mark.parametrize(("source", "parameters"), [(VIEWS, OF_VIEWS), (MADE, OF_CLICKS)], ids=["views", "clicks"])
def test_the_verifier_accepts_it_on_every_engine(read, source, parameters):
    log, release = same_table(read, source, parameters)
    found = qv.verify(release, log)
    assert found.holds, [verdict for verdict in found.verdicts if not verdict.holds]


def test_a_worked_example():
    """Seven people search for tea, six of them in NL and one in BE; three of those in NL click the same address."""
    rows = [
        {"user": f"u{n}", "query": "tea", "country": "NL" if n < 6 else "BE", "rank": 2 if n < 3 else None,
         "url": "http://tea.example" if n < 3 else None, "time": f"2006-03-0{1 + n} 10:00:00"}
        for n in range(7)
    ]  # fmt: skip
    log = qv.read_log(pa.Table.from_pylist(rows))
    made = qv.Counts(by=("query", "country"), min_row_users=3, min_metadata_users=7).anonymize(log, seed=1)
    assert made.to_arrow().to_pylist() == [
        {"query": "tea", "country": "*", "users": 7, "events": 7, "clicks": 3, "mean_rank": 2.0}
    ]
    made = qv.Counts(by=("query", "url"), min_row_users=3).anonymize(log, seed=1)
    assert made.to_arrow().to_pylist() == [
        {"query": "tea", "url": "http://tea.example", "users": 3, "events": 3, "clicks": 3, "mean_rank": 2.0},
        {"query": "tea", "url": None, "users": 4, "events": 4, "clicks": 0, "mean_rank": None},
    ]
    made = qv.Counts(by=("period",), period="week", min_row_users=2, users="band").anonymize(log, seed=1)
    assert made.to_arrow().to_pylist() == [
        {"period": "2006-02-27", "users_band": "5-9", "events": 5, "clicks": 3, "mean_rank": 2.0},
        {"period": "2006-03-06", "users_band": "2-4", "events": 2, "clicks": 0, "mean_rank": None},
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"by": ()}, "Counts needs a column to count by, such as by='query'."),
        ({"by": ("query", "query")}, "The 'by' parameter of Counts names a column twice; name it once."),
        ({"by": ("query", "url"), "totals": ("query",)}, "cannot go with 'url' in 'by'"),
        ({"totals": ("url",)}, "The 'totals' parameter of Counts names 'url', by which rows are not counted;"),
        ({"totals": ("query",)}, "The 'totals' parameter of Counts names all columns; name some of"),
        ({"base": 11}, "is 11, which rounds rows of 5 users to 0; choose at most 10, or a larger 'min_row_users'."),
        ({"base": 1}, "The 'base' parameter of Counts must be an integer of at least 2. Got 1 instead."),
        ({"epsilon": 1, "base": 5}, "The 'base' parameter of Counts has no place in a table with noise"),
    ],
)
def test_wrong_parameters_get_one_sentence(given, sentence):
    with pytest.raises(qv.QueryveilError) as error:
        qv.Counts(**given)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("given", "log", "sentence"),
    [
        ({"by": ("county",)}, {}, "The 'by' parameter of Counts names 'county', and the log has no such column;"),
        ({"by": ("query", "url")}, {}, "names 'url', and the log has no clicks or views; leave it out."),
        ({"by": ("period",)}, {}, "names 'period', and the log has no times; leave it out."),
        ({"by": ("period",)}, {"time": ["2006-03-01 10:00:00", "2006-03-09 11:00:00", None]},
         "The log covers 9 days, which is not a whole month; choose a shorter period with period='day',"),
        ({"by": ("events",)}, {"events": ["a", "b", "c"]}, "A metadata column cannot be called 'events'"),
        ({"by": ("Day",)}, {"Day": ["a", "b", "c"], "time": ["2006-03-01 10:00:00"] * 3},
         "cannot be called 'Day', which a table of counts needs"),
        ({"min_row_users": 4}, {}, "is 4, but the log has only 3 users"),
    ],
)  # fmt: skip
def test_columns_and_periods_that_the_log_does_not_have(given, log, sentence):
    made = qv.read_log(pa.table({"user": ["a", "b", "c"], "query": ["x"] * 3, **log}))
    with pytest.raises(qv.QueryveilError) as error:
        qv.Counts(**{"min_row_users": 2} | given).anonymize(made)
    assert sentence in str(error.value)


def test_events_without_a_time_are_left_out_of_periods_and_counted():
    times = ["2006-03-01 10:00:00", "2006-03-01 11:00:00", None]
    log = qv.read_log(pa.table({"user": ["a", "b", "c"], "query": ["x"] * 3, "time": times}))
    release = qv.Counts(by=("period",), period="day", min_row_users=2).anonymize(log, seed=1)
    assert release.to_arrow().to_pylist() == [{"period": "2006-03-01", "users": 2, "events": 2}]
    assert "Left out: 1 events without a time, which belong to no period." in release.notes


def test_it_says_which_rows_of_a_query_are_released():
    log = qv.read_log(pa.table({"user": list("abcd"), "query": ["x"] * 4, "country": ["NL"] * 3 + ["BE"]}))
    method = qv.Counts(by=("query", "country"), min_row_users=2, min_metadata_users=2)
    reasons = method.explain(log, 0)
    assert [(reason.passed, reason.found) for reason in reasons] == [
        (True, "4 did"),
        (True, "1 of its 1 rows are released"),
    ]


def test_after_scrubbing_it_is_a_pipeline_and_holds():
    rows = {"user": list("abcd"), "query": ["tea", "tea", "tea", "mail me at a@b.example"]}
    log = qv.read_log(pa.table(rows))
    release = qv.Pipeline([qv.Scrub(), qv.Counts(min_row_users=2)]).anonymize(log, seed=1)
    assert release.to_arrow().to_pylist() == [{"query": "tea", "users": 3, "events": 3}]
    assert qv.verify(release, log).holds
    with pytest.raises(qv.QueryveilError, match="counts cannot follow equality"):
        qv.Pipeline([qv.Equality(k=2), qv.Counts()])


@settings(max_examples=examples(15))
@given(EVENTS, st.sampled_from([["query"], ["query", "url"], ["country", "period"], ["rank", "device"]]), KEEP)
def test_a_table_with_noise_holds(events, by, keep):
    pytest.importorskip("opendp")
    log, _ = log_of(events, views=False)
    method = qv.Counts(by=by, epsilon=5, delta=0.1, max_rows_per_user=2, min_row_users=2, period="day", keep=keep)
    try:
        release = method.anonymize(log)
    except qv.QueryveilError as error:
        assert any(part in str(error) for part in ("has only", "has no times", "no clicks"))  # noqa: PT017
        return
    assert release.manifest.private
    assert release.manifest.input_fingerprint is None
    found = qv.verify(release, log)
    assert found.holds, [verdict for verdict in found.verdicts if not verdict.holds]
    assert all(row["users"] >= method.claim.steps[0].threshold for row in release.to_arrow().to_pylist())


@settings(max_examples=examples(25))
@given(EVENTS, st.permutations(["query", "country", "device"]), st.integers(1, 2), st.integers(2, 4))
def test_nothing_about_few_users_follows_from_totals(events, order, n_totals, least):
    """Read off the published rows alone: whoever is behind a difference is several people."""
    log, events = log_of(events, views=False)
    by, totals = order[:3], order[:n_totals]
    parameters = {
        "by": by, "totals": totals, "min_row_users": least, "min_query_users": None, "min_metadata_users": 2,
        "period": "day", "secondary": True,
    }  # fmt: skip
    try:
        release = qv.Counts(**parameters).anonymize(log, seed=3)
    except qv.QueryveilError:
        return
    truth = expected(log, events, parameters | {"secondary": False})
    rows = release.to_arrow().to_pylist()
    published = {tuple(row[name] for name in by): row for row in rows if not row["total"]}
    for total in (row for row in rows if row["total"]):
        below = {
            key: cell["users"]
            for key, cell in truth.cells.items()
            if all(key[by.index(name)] == total[name] for name in totals)
        }
        assert not 0 < len(set().union(*(users for key, users in below.items() if key not in published))) < least
        if total["users"] is not None:
            assert not any(0 < total["users"] - published[key]["users"] < least for key in below if key in published)


def test_views_that_few_did_not_click_do_not_follow():
    """Four people are shown the same result; all but one click it."""
    rows = [{"user": f"u{n}", "query": "tea", "url": "http://a.com", "rank": 1, "clicked": int(n > 0),
             "time": "2006-03-01 10:00:00"} for n in range(4)]  # fmt: skip
    log = qv.read_log(pa.Table.from_pylist(rows))
    release = qv.Counts(min_row_users=3).anonymize(log, seed=1)
    row = {"query": "tea", "users": 4, "events": 4, "views": 4, "clicks": None, "mean_rank": 1.0}
    assert release.to_arrow().to_pylist() == [row]
    forged = pa.Table.from_pylist([row | {"clicks": 3}], release.schema)
    found = qv.verify(replace(release, batches=lambda: iter(forged.to_batches())), log)
    assert [verdict.counterexample for verdict in found.verdicts if verdict.counterexample] == [
        "the row query 'tea' has 1 users behind its views that were not clicked"
    ]


def test_an_empty_table_with_noise_says_what_to_change(tmp_path):
    pytest.importorskip("opendp")
    log = qv.read_log(pa.table({"user": list("abcd"), "query": ["x"] * 4}))
    release = qv.Counts(epsilon=1e-3, delta=1e-6, min_row_users=2).anonymize(log)
    with pytest.raises(qv.QueryveilError, match=r"with its noise no row reached .* or a smaller 'max_rows_per_user'"):
        release.save(tmp_path / "r")
