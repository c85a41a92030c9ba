"""Input as it comes: delimited files of any dialect, arrays, partitioned folders, encodings, forms of times."""

import csv
import gzip
import io
import json
import warnings
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import queryveil as qv
from queryveil.errors import QueryveilWarning
from queryveil.formats.input import Input
from queryveil.formats.rows import known_columns, names_a_session
from queryveil.formats.times import find_time_format
from tests.formats.exports import EXPORTS
from tests.strategies import examples

ROWS = [["u1", "red shoes", "2026-01-05 10:00:00"], ["u2", "café", "2026-01-06 11:30:00"]]


def delimited(rows, delimiter=",", end="\n", quoting=csv.QUOTE_MINIMAL, head=("user", "query", "time")):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows([head, *rows])
    return out.getvalue()


def refused(path, **options):
    with pytest.raises(qv.QueryveilError) as caught:
        qv.read_log(path, **options)
    return str(caught.value)


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_are_read_as_they_come(write, name):
    export = EXPORTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryveilWarning)
        log = qv.read_log(write("log", export.data), **({"encoding": "cp1252"} if name == "german excel" else {}))
    assert log.stats.read_as.columns == export.columns
    assert str(log.engine.row("SELECT min(time) AS t FROM events")[0]) == export.first
    assert log.stats.bad_rows.total == 0


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
DIALECTS = [(d, e, q) for d in ",;|" for e in ("\n", "\r\n") for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)]


@settings(max_examples=examples(10))
@given(st.lists(st.tuples(TEXT, TEXT), min_size=2, max_size=6), st.sampled_from(DIALECTS), st.booleans())
def test_a_table_is_the_same_log_in_every_dialect(tmp_path_factory, rows, dialect, wide):
    folder = tmp_path_factory.mktemp("dialects")
    table = [[user, query, "2026-01-05 10:00:00"] for user, query in rows]
    expected = qv.read_log(pa.table(dict(zip(("user", "query", "time"), zip(*table, strict=True), strict=True))))
    delimiter, end, quoting = dialect
    text = delimited(table, delimiter, end, quoting, ("User ID", "Search Term", "Created At"))
    (folder / "csv").write_bytes(text.encode("utf-16" if wide else "utf-8-sig"))
    objects = [dict(zip(("uid", "q", "ts"), row, strict=True)) for row in table]
    (folder / "json").write_text(json.dumps(objects, indent=2 if wide else None), "utf-8")
    (folder / "jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects), "utf-8")
    for name in ("csv", "json", "jsonl"):
        assert qv.read_log(folder / name).fingerprint == expected.fingerprint, name


def test_a_table_with_unusual_names_is_detected_and_its_names_are_not_shown(write):
    path = write("log.csv", "jane doe,secret query,x\nb,c,d\n")
    sentence = refused(path)
    assert "No column of" in sentence
    assert "jane" not in sentence
    assert "secret" not in sentence


def test_of_several_users_people_come_before_sessions():
    assert known_columns(["session_id", "Visitor-ID", "q"]) == {"user": "Visitor-ID", "query": "q"}
    assert known_columns(["sid", "term"]) == {"user": "sid", "query": "term"}
    assert "user" not in known_columns(["device", "client", "browser", "profile"])
    assert names_a_session("Session-ID")
    assert not names_a_session("visitor_id")


def test_a_quoted_field_with_newlines_and_delimiters(write):
    log = qv.read_log(write("log.csv", 'user;query;note\nu;"a;b";"x\ny"\nv;c;z\n'))
    assert log.extras["note"].to_pylist() == ["x y", "z"] or set(log.extras["note"].to_pylist()) == {"x\ny", "z"}
    assert log.find("a;b") is not None


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "gb18030", "utf-8-sig"])
@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "json", "aol"])
def test_an_encoding_is_obeyed_by_every_text_format(write, encoding, format):
    if format in ("jsonl", "json"):
        objects = [dict(zip(("user", "query", "time"), row, strict=True)) for row in ROWS]
        lines = [json.dumps(one, ensure_ascii=False) for one in objects]
        text = "\n".join(lines) if format == "jsonl" else f"[{','.join(lines)}]"
    elif format == "aol":
        text = "".join("\t".join(row) + "\n" for row in ROWS)
    else:
        text = delimited(ROWS, "," if format == "csv" else "\t")
    log = qv.read_log(write("log", gzip.compress(text.encode(encoding))), encoding=encoding)
    assert log.find("café") is not None
    assert log.stats.read_as.format == format


def test_bytes_that_are_not_in_the_encoding_are_a_bad_row(write):
    data = delimited(ROWS).encode("utf-16-le") + "u3,\udc00,2026-01-05\n".encode("utf-16-le", "surrogatepass")
    log = qv.read_log(write("log.csv", data), encoding="utf-16-le", max_bad_rows=0.5)
    assert log.stats.bad_rows.count == {"undecodable bytes": 1}


def test_an_array_with_brackets_in_texts(write):
    objects = [{"user": "u", "query": 'a, [b] {"c"} \\', "n": {"deep": [1, {"x": "]"}]}}, {"user": "v", "query": "d"}]
    for indent in (None, 2):
        log = qv.read_log(write("log.json", " \n" + json.dumps(objects, indent=indent) + "\n"))
        assert sorted(log.query_text.to_pylist()) == sorted(['a, [b] {"c"} \\', "d"])


def test_an_array_is_cut_anywhere(write, monkeypatch):
    monkeypatch.setattr("queryveil.formats.source.BLOCK", 90)
    objects = [{"user": f"u{i}", "query": f'q "{i}", [x]'} for i in range(30)]
    log = qv.read_log(write("log.json", json.dumps(objects, indent=1)))
    assert log.n_queries == 30


def test_bad_objects_of_an_array_are_counted_by_their_place(write):
    path = write(
        "log.json", '[{"user": "u", "query": "a"},\n {"user": "v",\n "query" "b"},\n {"user": "w", "query": "c"}]'
    )
    assert f"1 with not a JSON object (first at {path}:2)" in refused(path)
    assert "has no end" in refused(write("cut.json", '[{"user": "u", "query": "a"},\n {"user": "v"'))


def test_folders_of_a_partitioned_log_are_columns(tmp_path):
    for day, country in (("2026-01-01", "de"), ("2026-01-02", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "log=x" / "logs" / f"day={day}" / f"country={country}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"user": ["u", "v"], "query": ["a", "b"]}), folder / "part-0.parquet")
        (folder / "_SUCCESS").write_text("")
        (folder / ".part-0.parquet.crc").write_text("x")
    whole = tmp_path / "log=x" / "logs"
    (whole / "_temporary=0").mkdir()
    (whole / "_temporary=0" / "part").write_text("x")
    log = qv.read_log(whole)
    assert log.stats.events == 4
    assert log.stats.extras == ("country",)  # not `log`, which is above what was named
    assert log.extras["country"].to_pylist() == ["de"]
    assert str(log.engine.row("SELECT max(time) AS t FROM events")[0]) == "2026-01-02 00:00:00"
    assert log.stats.read_as.columns["time"] == "day"
    pattern = qv.read_log(whole / "day=*" / "country=*" / "*.parquet")
    assert pattern.fingerprint == log.fingerprint
    assert qv.read_log(whole, columns={"land": "country"}).stats.extras == ("land",)


def test_a_partition_is_an_extra_column_if_the_files_have_times(tmp_path):
    (tmp_path / "day=2026-01-05").mkdir()
    (tmp_path / "day=2026-01-05" / "a.csv").write_text(delimited(ROWS[:1]), "utf-8")
    log = qv.read_log(tmp_path)
    assert log.extras["day"].to_pylist() == ["2026-01-05"]
    assert str(log.engine.row("SELECT max(time) AS t FROM events")[0]) == "2026-01-05 10:00:00"


@pytest.mark.parametrize("folders", [("day=1/Day=2",), ("country=US", "Country=DE"), ("QUERY=x",), ("Note=x",)])
def test_folders_that_differ_in_case_alone_are_refused(tmp_path, folders):
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.csv").write_text("user,query,note\nu,a,b\n", "utf-8")
    assert "case; rename" in refused(tmp_path)


def test_names_that_no_manifest_can_keep_are_refused(write):
    for name in ("x" * 201, "a\x01b"):
        path = write("log.csv", f"{name},query\nu,a\n")
        assert "has a name with a control character, or with over 200" in refused(path, columns={"user": name})
    assert "with over 200" in refused(write("log.csv", "user,query,z\nu,a,b\n"), columns={"x" * 201: "z"})
    log = qv.read_log(write("log.jsonl", '{"a\\"b": "u", "query": "a"}\n'), columns={"user": 'a"b'})
    assert log.stats.read_as.kept is None  # a name with a quote is read, and not kept


def test_days_and_months_that_could_be_confused_are_asked_for(write):
    path = write("log.csv", delimited([["u", "a", "05/01/2026 10:00"], ["v", "b", "06/02/2026 10:00"]]))
    sentence = refused(path)
    assert "time_format='%d/%m/%Y %H:%M' or time_format='%m/%d/%Y %H:%M'" in sentence
    for format, month in (("%d/%m/%Y %H:%M", 1), ("%m/%d/%Y %H:%M", 5)):
        log = qv.read_log(path, time_format=format)
        assert log.engine.row("SELECT min(time) AS t FROM events")[0].month == month


FORMATS = [
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%B %d, %Y",
    "%Y/%m/%d %H:%M:%S",
]


@settings(max_examples=examples(15))
@given(st.sampled_from(FORMATS), st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31)), min_size=1))
def test_a_time_format_is_found_or_asked_for_but_never_wrong(format, times):
    texts = [time.strftime(format) for time in times]
    expected = [datetime.strptime(text, format) for text in texts]
    try:
        found = find_time_format(pa.array(texts), "the log", dated=True)
    except qv.QueryveilError:
        return
    read = qv.read_log(
        pa.table({"user": ["u"] * len(texts), "query": [f"q{i}" for i in range(len(texts))], "time": texts}),
        time_format=found,
    )
    assert sorted(read.engine.fetch("SELECT time FROM events")["time"].to_pylist()) == sorted(expected)


def test_a_wrong_time_format_and_times_without_a_date(write):
    path = write("log.csv", delimited(ROWS))
    assert "must be a format of strptime with a year" in refused(path, time_format="%d/%m")
    assert "'time_format'" in refused(path, time_format="%d/%m/%Y")
    assert "times of day without a date" in refused(write("log.csv", delimited([["u", "a", "10:00:00"]])))


def test_workbooks_and_archives_are_refused_with_what_to_do(write):
    sentence = refused(write("log.xlsx", b"PK\x03\x04" + b"\0" * 30 + b"[Content_Types].xml"))
    assert "is an Excel workbook" in sentence
    assert "polars.read_excel(" in sentence
    assert "is a ZIP archive; unpack it" in refused(write("log.zip", b"PK\x03\x04" + b"\0" * 30 + b"log.csv"))
    assert "is an Excel workbook" in refused(write("log.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100))


def sessions(users, events, apart):
    rows = {"user": [], "query": [], "time": []}
    for user in range(users):
        for event in range(events):
            rows["user"].append(f"u{user}")
            rows["query"].append(f"q{event}")
            rows["time"].append(1767607200 + user * 3600 + event * apart)
    return pa.table(rows)


def test_users_that_look_like_sessions_are_warned_about_with_a_number():
    with pytest.warns(QueryveilWarning, match=r"^100.0 % of the users with several events .* in a log of 11 days"):
        qv.read_log(sessions(250, 3, apart=60))
    with pytest.warns(
        QueryveilWarning, match=r"^The 2 users of the log are in column 'Session ID'.*fewer than k people"
    ):
        qv.read_log(pa.table({"Session ID": ["a", "b"], "query": ["x", "y"]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qv.read_log(sessions(250, 3, apart=86_400))
        qv.read_log(sessions(30, 3, apart=60))


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "no such"},
        {"columns": {"user": 'a"b'}},
        {"columns": {"user": "\x1b[2J"}},
        {"columns": {"user": "x" * 300}},
        {"columns": {f"c{i}": "x" for i in range(200)}},
        {"encoding": "hex"},
        {"encoding": "hz"},
        {"encoding": "iso2022_jp"},
        {"encoding": "raw_unicode_escape"},
        {"encoding": "utf-7"},
        {"time_format": "no"},
        {"path": "/etc/passwd"},
    ],
)
def test_what_a_manifest_says_about_input_is_checked(wrong):
    with pytest.raises(ValidationError):
        Input.model_validate(wrong)


def test_what_a_manifest_keeps_are_names_that_are_not_the_usual_ones(write):
    assert qv.read_log(write("log.csv", delimited(ROWS))).stats.read_as.kept is None
    log = qv.read_log(
        write("log.csv", delimited(ROWS, head=("who", "q", "time"))), columns={"user": "who"}, format="csv"
    )
    assert log.stats.read_as.kept == Input(format="csv", columns={"user": "who", "query": "q"})
    assert log.stats.read_as.guessed == ("query", "time")
