"""Each kind of bad input is one clear sentence that says what, where, and what to do."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.formats import source

GOOD = "7\tcats\t2006-03-01 07:17:12\t\t\n"
HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"


def refused(path, **options) -> str:
    with pytest.raises(qv.QueryveilError) as caught:
        qv.read_log(path, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("content", ["", "\n\n", "  \n"])
def test_an_empty_file(write, content):
    assert "log is empty" in refused(write("log", content))


def test_only_a_header(write):
    assert "no row after the header" in refused(write("log", HEADER))
    assert "no row after the header" in refused(write("log.csv", "user,query\n"))


def test_only_empty_queries(write):
    assert "all 1 queries are empty" in refused(write("log", HEADER + "7\t-\t2006-03-01 07:17:12\t\t\n"))


def test_no_such_file(tmp_path):
    assert "There is no file" in refused(tmp_path / "nothing")
    assert "no file in the folder" in refused(tmp_path)


def test_an_address_without_spark():
    assert "a cluster reaches with a Spark session as 'engine'" in refused("hdfs://host/log.tsv")


def test_a_format_that_cannot_be_detected(write):
    assert "name it with 'format'" in refused(write("log", "what\nis\nthis\n"))


def test_an_encoding_without_a_mark(write):
    path = write("log.csv", "user,query\nu1,tea\n".encode("utf-16-le"))
    assert "name its encoding with encoding='utf-16-le'" in refused(path)
    assert qv.read_log(path, encoding="utf-16-le").n_users == 1


def test_files_of_two_formats(write):
    paths = [write("a", HEADER + GOOD), write("b", "A\t970916105432\tcats\n")]
    assert "several formats" in refused(paths)


def test_wrong_column_counts_are_reported_with_the_first_line(write):
    path = write("log", HEADER + GOOD * 3 + "7\tcats\n" + "7\ta\tb\tc\td\te\n")
    assert f"2 with wrong column count (first at {path}:5)" in refused(path)


def test_bad_times(write):
    path = write("log", HEADER + GOOD + "7\tcats\tyesterday\t\t\n")
    assert f"1 with bad time (first at {path}:3)" in refused(path)


def test_mixed_encodings(write):
    path = write("log", (HEADER + GOOD).encode() + "7\tcafé\t2006-03-01 07:17:12\t\t\n".encode("latin-1"))
    assert f"1 with undecodable bytes (first at {path}:3)" in refused(path)
    assert qv.read_log(path, encoding="latin-1").find("café") is not None


def test_utf_16_without_a_mark_asks_for_the_order_of_bytes(write):
    path = write("log", (HEADER + GOOD).encode("utf-16-le"))
    assert "has no byte order mark of utf-16; name the order" in refused(path, encoding="utf-16")
    assert qv.read_log(path, encoding="utf-16-le").n_queries == 1


def test_a_ten_megabyte_line(write):
    path = write("log", HEADER + GOOD + "7\t" + "x" * 10_000_000 + "\t2006-03-01 07:17:12\t\t\n" + GOOD)
    assert f"1 with over-long query (first at {path}:3)" in refused(path)
    assert len(qv.read_log(path, max_bad_rows=0.5).events) == 1


def test_a_line_longer_than_any_block(write, monkeypatch):
    monkeypatch.setattr("queryveil.formats.source.BLOCK", 1000)
    path = write("log", HEADER + GOOD + "7\t" + "x" * 5000 + "\t2006-03-01 07:17:12\t\t\n" + GOOD + "7\tcats\tno\t\t\n")
    sentence = refused(path)
    assert f"1 with over-long line (first at {path}:3)" in sentence
    assert f"1 with bad time (first at {path}:5)" in sentence


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(8, 64))
def test_rows_around_over_long_ones_keep_their_line_numbers(tmp_path_factory, lengths, size):
    path = tmp_path_factory.mktemp("f") / "log"
    path.write_text("".join("x" * length + "\n" for length in lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryveil.formats.source.BLOCK", size)
        found, overlong = {}, []
        for block in source.blocks(path):
            overlong += [block.overlong] * (block.overlong > 0)
            for i, row in enumerate(bytes(block.data).splitlines()):
                found[block.first_line + i] = len(row)
    assert set(found) | set(overlong) == set(range(1, len(lengths) + 1))
    assert not set(found) & set(overlong)
    assert all(lengths[line - 1] == length for line, length in found.items())
    assert all(lengths[line - 1] >= size for line in overlong)


def test_no_message_quotes_the_log(write):
    path = write("log", HEADER + GOOD + "31337\tmy secret query\tno time\t\t\n" * 3)
    sentence = refused(path)
    assert "secret" not in sentence
    assert "31337" not in sentence


def test_a_missing_header_does_not_show_the_first_row(write):
    for name, text in (("csv", "4417749,jane doe ssn\n"), ("tsv", "4417749\tjane doe ssn\n")):
        for columns in ({}, {"user": "a", "query": "b"}):
            sentence = refused(write("log", text), format=name, columns=columns)
            assert "it has 2 columns, none with a usual name" in sentence
            assert "jane" not in sentence
            assert "4417749" not in sentence


def test_a_first_row_that_holds_a_column_name_is_not_shown(write):
    for name, text in (("csv", "4417749,link,jane doe\n"), ("tsv", "4417749\tlink\tjane doe\n")):
        for columns in ({}, {"url": "link"}, {"user": "a"}):
            sentence = refused(write("log", text), format=name, columns=columns)
            assert "jane" not in sentence
            assert "4417749" not in sentence


def test_objects_keyed_by_user_or_query_are_not_shown(write):
    text = '{"4417749": "jane doe", "link": {"jane": 1}}\n{"4417750": "x"}\n'
    for columns in ({}, {"user": "u", "query": "q"}):
        sentence = refused(write("log", text), columns=columns)
        assert "jane" not in sentence
        assert "44177" not in sentence


def test_columns_of_a_table_are_named_by_their_number(tmp_path):
    wrong = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pq.write_table(pa.table({"user": ["a"], "query": ["b"], "jane doe": wrong}), tmp_path / "a")
    sentence = refused(tmp_path / "a")
    assert "Column 3 of" in sentence
    assert "jane" not in sentence


@pytest.mark.parametrize("rows", [1, 3000])
def test_thousands_of_distinct_keys_are_refused(write, rows):
    keys = 3000 // rows
    lines = ("".join(f', "k{row * keys + i}": 1' for i in range(keys)) for row in range(rows))
    text = "".join(f'{{"user": "a", "query": "b"{line}}}\n' for line in lines)
    assert "has more than 100 columns or keys" in refused(write("log", text))


def test_thousands_of_columns_are_refused(write, tmp_path):
    names = ["user", "query", *(f"c{i}" for i in range(3000))]
    assert "has more than 100 columns or keys" in refused(write("log.csv", ",".join(names) + "\n"))
    pq.write_table(pa.table({name: ["a"] for name in names}), tmp_path / "log")
    assert "has more than 100 columns or keys" in refused(tmp_path / "log")


def test_keys_that_grow_from_file_to_file_are_refused(write):
    files = [
        write(f"log-{n}", json.dumps({"user": "a", "query": "b"} | {f"k{n}-{i}": 1 for i in range(60)})) for n in (1, 2)
    ]
    assert "The log has more than 100 columns or keys" in refused(files)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deep_json(write, depth):
    line = '{"user": "a", "query": "b", "c": ' + '{"a":' * depth + "1" + "}" * (depth + 1) + "\n"
    try:
        assert len(qv.read_log(write("log", line), format="jsonl").events) == 1
    except qv.QueryveilError as error:
        assert "not a JSON object" in str(error)  # noqa: PT017
    with pytest.raises(qv.QueryveilError):
        qv.read_log(write("log", "[" * depth + "\n"))


@pytest.mark.parametrize("key", ["", "a.b", ".", "a~b", "a/b", "it's", 'a"b', "$", "*", "a b"])
def test_any_key_can_be_the_user(write, key):
    log = qv.read_log(write("log", json.dumps({key: "jane", "query": "b"})), columns={"user": key}, format="jsonl")
    assert log.user_text.to_pylist() == ["jane"]


def test_an_empty_key_and_one_with_a_quote_are_reported(write):
    for key in ("", 'a"b', "\x00"):
        text = json.dumps({"user": "a", "query": "b", key: "c"})
        assert "has a name with a quote" in refused(write("log", text))


@pytest.mark.parametrize(
    "encoding", ["idna", "punycode", "hex", "utf-7", "undefined", "no such", "a\0b", "unicode_escape"]
)
def test_encodings_that_cannot_be_used(write, encoding):
    sentence = refused(write("log", HEADER + GOOD), encoding=encoding)
    assert "convert them to UTF-8" in sentence or "There is no encoding" in sentence


def test_ranks_of_any_precision(tmp_path):
    for kind in (np.float16, np.float32, np.float64):
        table = pa.table({"user": ["a"] * 4, "query": ["b"] * 4, "rank": np.array([1, 2.5, np.inf, np.nan], kind)})
        log = qv.read_log(table, max_bad_rows=1)
        assert log.clicks["rank"].to_pylist() == [1]
        assert log.stats.bad_rows.count == {"bad rank": 2}


@pytest.mark.parametrize(
    "time",
    [
        *(
            "0000-01-01 00:00:00",
            "10000-01-01",
            "1e300",
            "-1",
            "inf",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:00:00-14:00",
        ),
        *(-62_135_596_800_000_001, 253_402_300_800_000_000, 2**63 - 1, -(2**63) + 2),
    ],
)
def test_far_times_are_bad(time):
    column = pa.array([time], pa.string() if isinstance(time, str) else pa.timestamp("us"))
    table = pa.table({"user": ["a"], "query": ["b"], "time": column})
    with pytest.raises(qv.QueryveilError, match="1 with bad time"):
        qv.read_log(table)


@pytest.mark.parametrize("time", ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"])
def test_the_first_and_the_last_time(time):
    log = qv.read_log(pa.table({"user": ["a"], "query": ["b"], "time": [time]}))
    assert log.events["time"][0].as_py().isoformat(" ") == time


def test_a_few_bad_rows_are_left_out_and_counted(write):
    log = qv.read_log(write("log", HEADER + GOOD * 300 + "7\tcats\n"))
    assert log.stats.bad_rows.count == {"wrong column count": 1}


def test_parquet_of_the_wrong_types(tmp_path):
    pq.write_table(pa.table({"user": ["a"], "query": [[1, 2]]}), tmp_path / "a")
    assert "holds list<element: int64>, which cannot be a query" in refused(tmp_path / "a")
    pq.write_table(pa.table({"user": ["a"], "query": [1.5]}), tmp_path / "b")
    assert "holds double, which cannot be a query" in refused(tmp_path / "b")
    pq.write_table(pa.table({"user": ["a"], "query": ["x"], "time": [True]}), tmp_path / "c")
    assert "holds bool, which cannot be a time" in refused(tmp_path / "c")


def test_a_damaged_parquet_file(tmp_path):
    pq.write_table(pa.table({"user": ["a"], "query": ["x"]}), tmp_path / "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:-9])
    assert "cut off or damaged" in refused(tmp_path / "b")


def test_columns_that_are_not_there(write):
    path = write("log.csv", "who,what\na,b\n")
    assert "No column of" in refused(path, format="csv")
    assert "There is no column 'when'" in refused(
        path, columns={"user": "who", "query": "what", "time": "when"}, format="csv"
    )
    assert "has two columns with the same name" in refused(write("two.csv", "user,query,query\na,b,c\n"))
    assert "No column of" in refused(write("no-header.csv", "u1,tea,,\nu2,tea,,\n"))
    assert "are fixed" in refused(write("aol", HEADER + GOOD), columns={"user": "x"})


@pytest.mark.parametrize("name", ['a"b', "", "\x1b"])
def test_a_name_that_no_table_can_have(write, name):
    path = write("log.csv", "user,query,device\na,b,c\n")
    assert "'columns' gives a column a name with a quote" in refused(path, columns={name: "device"})


def test_names_that_differ_in_case_alone(write):
    path = write("log.csv", "user,query,x,y\na,b,c,d\n")
    assert "the same name except for case" in refused(path, columns={"A": "x", "a": "y"})
    assert "the same name except for case" in refused(path, columns={"Query": "x"})


def test_a_header_with_a_quote_is_reported_without_naming_the_format(write):
    assert "has a name with a quote" in refused(write("log.csv", 'user,query,5" pipe\na,b,c\n'))


def test_a_wide_header_over_short_rows_is_refused_before_it_takes_memory(write):
    text = ",".join(["user", "query", *(f"c{i}" for i in range(90))]) + "\n" + "a\n" * 2_000_000
    assert "far fewer fields than its 92 columns" in refused(write("log.csv", text))


def test_a_column_that_was_given_another_name_is_not_listed_as_found(write):
    found = refused(write("log.csv", "user,query\na,b\n"), columns={"usr": "user"}, format="csv")
    assert "looks like the user" in found
    assert "of its 2 columns, these were found by name: query." in found


def test_a_column_with_a_similar_usual_name_is_suggested(write):
    path = write("log.csv", "user,query\na,b\n")
    found = refused(path, columns={"query": "qurey"}, format="csv")
    assert "There is no column 'qurey'" in found
    assert "did you mean 'query'? Of its 2 columns, these were found by name: user." in found
    # The first line of a file without a header is data, and never shown.
    found = refused(write("no.csv", "jane,tea\nb,c\n"), columns={"user": "janet", "query": "x"}, format="csv")
    assert "did you mean" not in found
