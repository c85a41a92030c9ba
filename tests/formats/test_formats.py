"""Every format gives the same log; compression and the number of files change nothing."""

import bz2
import gzip
import json
import lzma
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.formats import FORMATS
from queryveil.formats.detection import detect
from queryveil.formats.source import BLOCK
from tests.both import on_both_engines

ROWS = [
    ("7", "cell phone case", "2006-03-01 07:17:12", "1", "http://www.a.com"),
    ("7", "cell phone case", "2006-03-01 07:17:12", "3", "http://www.b.com/x?y=1"),
    ("7", 'a 6" pipe', "2006-03-02 09:00:00", "", ""),
    ("8", "Cell Phone  Case", "2006-03-01 07:17:13", "", ""),
    ("9", "été", "2006-04-01 00:00:00", "2", "http://c.org"),
]
HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"


def aol(rows=ROWS, header=True) -> str:
    return "".join(line + "\n" for line in [*([HEADER] if header else []), *map("\t".join, rows)])


def spelled_out(log: qv.QueryLog) -> Counter:
    """Events with their clicks as text."""
    clicks = Counter()
    for click in log.clicks.to_pylist():
        clicks[click["event_id"], click["rank"], log.url_text[click["url_id"]].as_py()] += 1
    return Counter(
        (
            log.user_text[event["user_id"]].as_py(),
            log.query_text[event["query_id"]].as_py(),
            event["time"] and event["time"].isoformat(" "),
            tuple(sorted((rank, url) for (i, rank, url) in clicks if i == event["event_id"])),
        )
        for event in log.events.to_pylist()
    )


EXPECTED = Counter(
    [
        ("7", "cell phone case", "2006-03-01 07:17:12", ((1, "http://www.a.com"), (3, "http://www.b.com/x?y=1"))),
        ("7", 'a 6" pipe', "2006-03-02 09:00:00", ()),
        ("8", "cell phone case", "2006-03-01 07:17:13", ()),
        ("9", "été", "2006-04-01 00:00:00", ((2, "http://c.org"),)),
    ]
)


def csv_text(delimiter: str) -> str:
    lines = [["when", "cookie", "q", "pos", "link"]]
    lines += [[time, user, '"' + query.replace('"', '""') + '"', rank, url] for user, query, time, rank, url in ROWS]
    return "".join(delimiter.join(line) + "\r\n" for line in lines)


def json_lines() -> str:
    return "".join(
        json.dumps({"user": int(user), "query": query, "ts": time, "rank": rank and int(rank), "url": url or None})
        + "\n"
        for user, query, time, rank, url in ROWS
    )


MAPPING = {"user": "cookie", "query": "q", "time": "when", "rank": "pos", "url": "link"}


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("aol", aol(), {}),
        ("aol", aol(header=False), {}),
        ("aol", aol(ROWS[:2]) + aol(ROWS[2:]), {}),
        ("aol", aol().replace("\n", "\r\n"), {}),
        ("aol", "\ufeff" + aol(), {}),
        ("csv", csv_text(","), {"columns": MAPPING}),
        ("csv", csv_text(";"), {"columns": MAPPING}),
        ("tsv", "\t".join(["user", "query", "time", "rank", "url"]) + "\n" + aol(header=False), {}),
        ("jsonl", json_lines(), {}),
    ],
)
def test_every_spelling_of_a_log_is_the_same_log(write, name, content, options):
    path = write("log", content)
    if not options:
        assert detect(path) == name
    log = qv.read_log(path, **options)
    assert spelled_out(log) == EXPECTED
    assert log.stats.bad_rows.total == 0
    assert log.fingerprint == qv.read_log(write("other", aol())).fingerprint


def test_parquet_with_its_own_types(tmp_path):
    table = pa.table(
        {
            "user": pa.array([int(row[0]) for row in ROWS]),
            "query": pa.array([row[1] for row in ROWS]).dictionary_encode(),
            "time": pa.array([row[2] for row in ROWS]).cast(pa.timestamp("s")),
            "rank": pa.array([float(row[3]) if row[3] else None for row in ROWS]),
            "url": pa.array([row[4] or None for row in ROWS], pa.large_string()),
        }
    )
    pq.write_table(table, tmp_path / "log")
    assert detect(tmp_path / "log") == "parquet"
    assert spelled_out(qv.read_log(tmp_path / "log")) == EXPECTED


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_compression_is_detected_automatically(write, compress):
    assert spelled_out(qv.read_log(write("log.txt", compress(aol().encode())))) == EXPECTED


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_truncated_file_is_one_sentence(write, compress):
    whole = compress((aol() * 2000).encode())
    path = write("log.x", whole[: len(whole) - 40])
    with pytest.raises(qv.QueryveilError, match=r"log\.x is cut off or damaged|log\.x cannot be read"):
        qv.read_log(path)


def test_several_files_a_folder_and_a_pattern(write, tmp_path):
    write("part-1.tsv", aol(ROWS[:2]))
    write("part-2.tsv", aol(ROWS[2:], header=False))
    write("part-3.tsv", "")
    write(".hidden", "not a log")
    paths = [tmp_path / f"part-{i}.tsv" for i in (1, 2)]
    for source in (paths, tmp_path, str(tmp_path / "part-*.tsv"), [str(paths[0]), str(paths[1])]):
        assert spelled_out(qv.read_log(source)) == EXPECTED


README = """500k User Session Collection
----------------------------------------------
The data is\tsorted by anonymous user ID, and is made up here.

AnonID\tan anonymous user ID number.
"""


@on_both_engines
def test_the_aol_collection_as_it_lies_in_its_folder(read, tmp_path_factory):
    folder = tmp_path_factory.mktemp("AOL-user-ct-collection")
    for number, rows in enumerate((ROWS[:2], ROWS[2:4], ROWS[4:]), 1):
        name = f"user-ct-test-collection-{number:02}.txt.gz"
        (folder / name).write_bytes(gzip.compress(aol(rows).encode()))
    (folder / "U500k_README.txt").write_text(README)
    (folder / "md5sums").write_text("d41d8cd98f00b204e9800998ecf8427e  user-ct-test-collection-01.txt.gz\n")
    log = read(folder)
    assert (log.stats.rows, log.stats.bad_rows.total, log.n_users, log.stats.events) == (5, 0, 3, 4)
    (folder.parent / "whole.tsv").write_text(aol())
    assert log.fingerprint == qv.read_log(folder.parent / "whole.tsv").fingerprint


def test_only_files_of_a_folder_are_passed_over(write):
    assert spelled_out(qv.read_log(write("readme.tsv", aol()))) == EXPECTED


@pytest.mark.parametrize("name", ["readmenow.tsv", "mylicense-queries.tsv"])
def test_a_log_is_not_taken_for_something_beside_it(write, tmp_path, name):
    write(name, aol())
    assert spelled_out(qv.read_log(tmp_path)) == EXPECTED


def test_blocks_of_a_large_file_meet_without_a_seam(write, monkeypatch):
    whole = qv.read_log(write("a", aol(ROWS * 50)))
    for size in (64, 100, 1000):
        monkeypatch.setattr("queryveil.formats.source.BLOCK", size)
        cut = qv.read_log(write("b", aol(ROWS * 50)))
        assert cut.fingerprint == whole.fingerprint
        quoted = qv.read_log(write("c", csv_text(",")), columns=MAPPING, format="csv")
        assert spelled_out(quoted) == EXPECTED
    assert BLOCK > 1000


def test_excite(write):
    path = write("log", "A1\t970916105432\t+md foods +proteins\nA1\t970916105440\t\nB2\t970916001949\tyahoo chat\n")
    assert detect(path) == "excite"
    log = qv.read_log(path)
    assert spelled_out(log) == Counter(
        [("A1", "+md foods +proteins", "1997-09-16 10:54:32", ()), ("B2", "yahoo chat", "1997-09-16 00:19:49", ())]
    )
    assert log.stats.empty_rows == 1


SOGOU = Counter(
    [
        ("2982199073774412", "360安全卫士", "2006-08-01 00:00:00", ((8, "download.it.com.cn/x.html"),)),
        ("07594220010824798", "哄抢救灾物资", "2006-08-01 00:00:01", ((1, "news.21cn.com/a.shtml"),)),
    ]
)


def test_sogou_in_both_printings(write):
    old = "00:00:00\t2982199073774412\t[360安全卫士]\t8 3\tdownload.it.com.cn/x.html\n" \
          "00:00:01\t07594220010824798\t[哄抢救灾物资]\t1 1\tnews.21cn.com/a.shtml\n"  # fmt: skip
    new = "20060801000000\t2982199073774412\t360安全卫士\t8\t3\tdownload.it.com.cn/x.html\n" \
          "20060801000001\t07594220010824798\t哄抢救灾物资\t1\t1\tnews.21cn.com/a.shtml\n"  # fmt: skip
    for name, text, encoding in [
        ("access_log.20060801.decode", old, "gb18030"),
        ("new", new, "gb18030"),
        ("new8", new, "utf-8"),
    ]:
        path = write(name, text.encode(encoding))
        assert detect(path) == "sogou"
        assert spelled_out(qv.read_log(path)) == SOGOU


def test_undecodable_gb18030_is_a_bad_row(write):
    line = "20060801000000\tu\t奇艺\t8\t3\tx.cn\n".encode("gb18030")
    log = qv.read_log(write("log", line * 30 + line.replace("奇艺".encode("gb18030"), b"\xff\xff")), max_bad_rows=0.1)
    assert log.stats.bad_rows.count == {"undecodable bytes": 1}
    assert log.stats.bad_rows.first["undecodable bytes"].endswith("log:31")


QUERY = {"application": "shop", "query_id": "q1", "client_id": "c1", "user_query": "Red Shoes",
         "timestamp": "2024-06-10T08:00:00.000Z", "query_attributes": {"device": "phone"}}  # fmt: skip
CLICK = {"application": "shop", "action_name": "click", "query_id": "q1", "client_id": "c1",
         "timestamp": "2024-06-10T08:00:09Z",
         "event_attributes": {"object": {"object_id": "sku-9"}, "position": {"ordinal": 3}}}  # fmt: skip
OTHER = QUERY | {"query_id": "q2", "client_id": "c2", "timestamp": 1718006400000}
IMPRESSION = CLICK | {"action_name": "impression", "query_id": "q2"}
UBI = Counter(
    [
        ("c1", "red shoes", "2024-06-10 08:00:00", ((3, "sku-9"),)),
        ("c2", "red shoes", "2024-06-10 08:00:00", ()),
    ]
)


def ndjson(*documents) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def test_ubi_as_plain_documents_hits_and_bulk(write, tmp_path):
    documents = [QUERY, OTHER, CLICK, IMPRESSION]
    plain = ndjson(*documents)
    hits = ndjson(*({"_index": "ubi_queries", "_id": str(i), "_source": d} for i, d in enumerate(documents)))
    bulk = ndjson(*(line for d in documents for line in ({"index": {"_index": "ubi_queries"}}, d)))
    for name, text in [("plain", plain), ("hits", hits), ("bulk", bulk)]:
        path = write(name, text)
        assert detect(path) == "ubi"
        log = qv.read_log(path)
        assert spelled_out(log) == UBI
        assert log.extras["device"].to_pylist() == ["phone"]
    write("apart/x".replace("/", "-"), "")
    queries, events = write("q.ndjson", ndjson(QUERY, OTHER)), write("e.ndjson", ndjson(CLICK, IMPRESSION))
    assert spelled_out(qv.read_log([events, queries])) == UBI
    assert tmp_path.exists()


def test_ubi_reports_broken_lines(write):
    log = qv.read_log(
        write("log", ndjson(*(QUERY | {"query_id": f"q{i}"} for i in range(50))) + "{broken\n"),
        format="ubi",
        max_bad_rows=0.1,
    )
    assert log.stats.bad_rows.count == {"not a JSON object": 1}
    assert log.stats.bad_rows.first["not a JSON object"].endswith("log:51")


def test_ubi_counts_a_query_once_and_reports_clicks_without_one(write):
    orphan = CLICK | {"query_id": "gone"}
    log = qv.read_log(write("log", ndjson(QUERY, QUERY, CLICK, OTHER, orphan)), max_bad_rows=0.5)
    assert spelled_out(log) == UBI
    assert log.stats.bad_rows.count == {"a click without its query": 1}
    assert log.stats.bad_rows.first["a click without its query"].endswith("log:5")


def test_json_lines_do_not_depend_on_what_the_first_object_leaves_out(write):
    full = {"user": "b", "query": "y", "time": "2006-03-01", "url": "http://u", "device": "d"}
    rows = [{"user": "a", "query": "x"}, full]
    forwards, backwards = (qv.read_log(write("log", ndjson(*order))) for order in (rows, rows[::-1]))
    assert forwards.fingerprint == backwards.fingerprint
    assert (len(forwards.clicks), forwards.has_times, list(forwards.extras)) == (1, True, ["device"])


def test_a_stray_quote_does_not_swallow_the_rest_of_a_csv(write, monkeypatch):
    lines = ["user,query"] + [f"u{i},q{i}" for i in range(2000)]
    lines[1001] = 'u1000,"never closed'
    for size in (BLOCK, 512):
        monkeypatch.setattr("queryveil.formats.source.BLOCK", size)
        log = qv.read_log(write("log.csv", "\n".join(lines)))
        assert len(log.events) == 2000
        assert log.find('"never closed') is not None


def test_rows_that_a_quote_swallows_count_one_by_one(write):
    lines = ["user,query"] + [f"u{i},q{i}" for i in range(200)]
    lines[50] = 'u49,"open'
    lines[60] = 'u59,close",x'
    with pytest.raises(qv.QueryveilError, match="11 of 200 rows are bad"):
        qv.read_log(write("log.csv", "\n".join(lines)))


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(qv.QueryveilError, match="not a regular file"):
        qv.read_log(tmp_path / "pipe")


def test_a_csv_header_is_csv(write):
    log = qv.read_log(write("log.csv", '"user","query","note, long"\na,x,"1, 2"\n'))
    assert log.extras["note, long"].to_pylist() == ["1, 2"]


def test_odd_values_and_columns_of_parquet(tmp_path):
    table = pa.table(
        {
            "user": [f"u{i}" for i in range(100)],
            "query": ["x"] * 100,
            "rank": [float("nan"), 1.5, 2.0, *[3.0] * 97],
            "url": ["http://u"] * 100,
            "tags": [["a"]] * 100,
            "since": pa.array([0] * 100, pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "log")
    log = qv.read_log(tmp_path / "log")
    assert log.stats.bad_rows.count == {"bad rank": 1}
    assert list(log.extras) == ["since"]
    assert log.clicks["rank"].null_count == 1
    pq.write_table(pa.table([["a"], ["b"], ["c"]], ["user", "query", "query"]), tmp_path / "two")
    with pytest.raises(qv.QueryveilError, match="has two columns with the same name"):
        qv.read_log(tmp_path / "two")
    offsets, data = pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])
    with pytest.raises(qv.QueryveilError, match="not UTF-8"):
        qv.read_log(pa.table({"user": ["a"], "query": broken}))


@pytest.mark.parametrize("end", [",", ",,,"])
def test_a_delimiter_behind_each_row(write, end):
    log = qv.read_log(write("log.csv", f"user,query,device{end}\nu1,tea,phone{end}\nu2,tea,{end}\n"))
    assert (log.n_users, log.n_queries, list(log.extras)) == (2, 1, ["device"])


def test_columns_that_differ_only_in_case(write):
    with pytest.raises(qv.QueryveilError, match="the same name except for case"):
        qv.read_log(write("log.csv", "user,query,Device,device\na,b,c,d\n"))


def test_users_are_trimmed_in_every_format(write):
    assert qv.read_log(write("log", ndjson(*({"user": u, "query": "x"} for u in ("a", " a", "a "))))).n_users == 1


def test_json_lines_take_nested_columns_by_dots(write):
    path = write(
        "log", '{"client": {"id": "u1"}, "search": "Tea"}\n[1]\n' + '{"client": {"id": "u2"}, "search": "tea"}\n' * 99
    )
    log = qv.read_log(path, format="jsonl", columns={"user": "client.id", "query": "search"})
    assert (log.n_users, log.n_queries, len(log.events)) == (2, 1, 100)
    assert log.stats.bad_rows.first == {"not a JSON object": f"{path}:2"}


def test_every_listed_format_is_a_module_that_can_be_named(write):
    for name in FORMATS:
        assert Path(qv.__file__).parent.joinpath("formats", f"{name}.py").exists()
    with pytest.raises(qv.QueryveilError, match="There is no format 'word'"):
        qv.read_log(write("x", "y"), format="word")
