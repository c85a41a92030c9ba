"""Each kind of bad input is one clear sentence that says what, where, and what to do."""

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
    assert "no row behind the header" in refused(write("log", HEADER))
    assert "no row behind the header" in refused(write("log.csv", "user,query\n"))


def test_only_empty_queries(write):
    assert "all 1 queries are empty" in refused(write("log", HEADER + "7\t-\t2006-03-01 07:17:12\t\t\n"))


def test_no_such_file(tmp_path):
    assert "There is no file" in refused(tmp_path / "nothing")
    assert "no file in the folder" in refused(tmp_path)


def test_an_address_without_spark():
    assert "read it with --engine spark" in refused("s3://bucket/log.tsv")


def test_a_format_that_cannot_be_told(write):
    assert "name it with --format" in refused(write("log", "what\nis\nthis\n"))
    assert "name it with --format" in refused(write("bytes", "a,b\rc,d\0\n"))


def test_files_of_two_formats(write):
    paths = [write("a", HEADER + GOOD), write("b", "A\t970916105432\tcats\n")]
    assert "several formats" in refused(paths)


def test_wrong_column_counts_are_told_with_the_first_line(write):
    path = write("log", HEADER + GOOD * 3 + "7\tcats\n" + "7\ta\tb\tc\td\te\n")
    assert f"2 with wrong column count (first at {path}:5)" in refused(path)


def test_bad_times(write):
    path = write("log", HEADER + GOOD + "7\tcats\tyesterday\t\t\n")
    assert f"1 with bad time (first at {path}:3)" in refused(path)


def test_mixed_encodings(write):
    path = write("log", (HEADER + GOOD).encode() + "7\tcafé\t2006-03-01 07:17:12\t\t\n".encode("latin-1"))
    assert f"1 with undecodable bytes (first at {path}:3)" in refused(path)
    assert qv.read_log(path, encoding="latin-1").find("café") is not None


def test_utf_16(write):
    assert "UTF-16" in refused(write("log", (HEADER + GOOD).encode("utf-16")), format="aol")


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
        found, told = {}, []
        for block in source.blocks(path):
            told += [block.overlong] * (block.overlong > 0)
            for i, row in enumerate(bytes(block.data).splitlines()):
                found[block.first_line + i] = len(row)
    assert set(found) | set(told) == set(range(1, len(lengths) + 1))
    assert not set(found) & set(told)
    assert all(lengths[line - 1] == length for line, length in found.items())
    assert all(lengths[line - 1] >= size for line in told)


def test_no_message_quotes_the_log(write):
    path = write("log", HEADER + GOOD + "31337\tmy secret query\tno time\t\t\n" * 3)
    sentence = refused(path)
    assert "secret" not in sentence
    assert "31337" not in sentence


def test_a_missing_header_does_not_show_the_first_row(write):
    for name, text in (("csv", "4417749,jane doe ssn\n"), ("tsv", "4417749\tjane doe ssn\n")):
        for columns in ({}, {"user": "a", "query": "b"}):
            sentence = refused(write("log", text), format=name, columns=columns)
            assert "does not look like a header" in sentence
            assert "jane" not in sentence
            assert "4417749" not in sentence


def test_a_few_bad_rows_are_left_out_and_counted(write):
    log = qv.read_log(write("log", HEADER + GOOD * 300 + "7\tcats\n"))
    assert log.facts.bad_rows.count == {"wrong column count": 1}


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
    assert "names two columns alike" in refused(write("two.csv", "user,query,query\na,b,c\n"))
    assert "are fixed" in refused(write("aol", HEADER + GOOD), columns={"user": "x"})


def test_utf_16_is_told_whatever_the_format(write):
    for options in ({}, {"format": "csv"}, {"format": "tsv"}):
        assert "UTF-16" in refused(write("log", "user,query\na,b\n".encode("utf-16")), **options)


def test_a_header_with_a_quote_is_told_without_naming_the_format(write):
    assert "has a name with a quote" in refused(write("log.csv", 'user,query,5" pipe\na,b,c\n'))
