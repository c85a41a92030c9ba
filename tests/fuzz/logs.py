"""Hostile query logs: good ones in every format, and then what goes wrong in cells, names, structure and bytes.

`make_case(format, seed)` gives the same case for the same seed, on every machine.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "kq7x"
"""Every user id and every query holds this, so that a message that quotes one is noticed."""

NAMES = ("user", "query", "time", "rank", "url")
HARD = {
    "time": [
        "", "0", "-1", "1e300", "inf", "-inf", "nan", "9" * 18, "9" * 19, "9" * 400, "0000-01-01",
        "0001-01-01 00:00:00", "9999-12-31 23:59:59", "10000-01-01", "99999999999999", "-292277-01-01",
        "2006-02-30", "2006-13-01 00:00:00", "2006-03-01T00:00:00+99:99", "2006-03-01 24:00:00", "00:00:00",
        "253402300800", "9999999999999999", "\x00", "١٢٣", "1970-01-01 00:00:00.999999999999999999999999",
        "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    ],
    "rank": [
        "", "-1", "0", "1.5", "1e9", "999999999", "2147483648", "9" * 30, "nan", "inf", "x", "٣", "\x00", "+1",
        " 1 ",
    ],
    "url": [
        "", "http://", "http://[::1", "javascript:alert(1)", "\x1b[2J", "http://" + "a." * 200, "x" * 20_000,
        "http://kq7x.ü", "//", "://", "http://a:99999999/",
        "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    ],
    "query": [
        "", "-", " ", "kq7x", "kq7x\x00null", "\x1b]0;kq7x\x07", "kq7x \u202e rtl", "=kq7x()", "+kq7x", "-kq7x",
        "@kq7x", "'kq7x", "''kq7x", "kq7x" * 5000, "kq7x \U0001f600", "ⅷ kq7x ﬁ", "kq7x\u0300" * 50, "ﷺ" * 30,
        '"kq7x"', "kq7x\u2028b", "\ufeffkq7x", "kq7x\ud7ff", "a" * 70_000, "İ kq7x", "kq7x \u0000", "kq7x,\"a\",b",
        "<kq7x>", "NULL", "None", "\\N",
    ],
    "user": [
        "", " ", "kq7x\x00", "kq7x" * 4000, "kq7x\u0301", "'kq7x", '"', "kq7x,", "-", "0", "\u200b", "kq7x 1 ",
        "kq7x\ufeff",
    ],
}  # fmt: skip
NAMES_OF_COLUMNS = [
    "", " ", ".", "..", "a.b", "a.", ".a", '"', "'", "a\"b", "a'b", "kq7x jane doe", "\x00", "\x1b[31m", "*", "$",
    "$.a", "[0]", "user", "User", "USER", "query", "time", "link", "date", "Query ", "user id", "user_id", "line",
    "file", "text", "c0", "c1", "id", "event_id", "query_id", "user_id ", "url_id", "good", "lines", "rank", "é",
    "é", "İ", "i̇", "ſ", "a" * 70_000, "\u202e", "a\tb", "a\nb", "extra user", "select", "a;b", "a--b", "%s",
    "{0}", "\\", "\\u0000", "/", "null", "kq7x" * 50, "_source", "index",
]  # fmt: skip
ENCODINGS = [
    "latin-1", "gb18030", "cp1252", "utf-8-sig", "UTF8", "shift_jis", "utf-7", "utf-16", "utf-16-le", "idna",
    "punycode", "rot13", "hex", "base64", "zlib", "raw_unicode_escape", "unicode_escape", "undefined", "cp037",
    "hz", "iso2022_jp", "mbcs", "", "\x00", "utf-8\x00", "no such", "big5", "euc_kr", "cp65001", "ascii", "uu",
    "quopri", "charmap", "oem", "utf-32", "x" * 5000, "ä", "utf_8", "unicode_internal", "cp932", "johab",
    "string_escape", "bz2",
]  # fmt: skip


PARTITIONED = ["day=2026-01-01/log", "user=x/log", "a%22b=1/log", "=x/log", "query=__HIVE_DEFAULT_PARTITION__/log"]
TIME_FORMATS = [
    "%d/%m/%Y",
    "%Y-%m-%d %H:%M:%S",
    "%",
    "",
    "%Y" * 50,
    "%q",
    "\x00%Y",
    "%Y\n",
    "%s",
    "%c",
    "%-d.%y",
    "'%Y",
]


@dataclass
class Case:
    """Files with their contents, and the options to read them with."""

    files: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)


def make_case(format: str, seed: int) -> Case:
    """A hostile log."""
    random = Random(f"{format} {seed}")
    rows = good_rows(random)
    for _ in range(random.choice((0, 0, 1, 1, 2, 5))):
        column = random.randrange(5)
        random.choice(rows)[column] = random.choice(HARD[NAMES[column]])
    options: dict[str, Any] = {}
    data = WRITERS[format](random, rows, options)
    if random.random() < 0.3:
        data = spoiled(random, data)
    if random.random() < 0.1:
        data = random.choice([gzip.compress, bz2.compress, lzma.compress])(data)
        if random.random() < 0.5:
            data = spoiled(random, data)
    if random.random() < 0.6:
        options["format"] = format
    if random.random() < 0.1:
        options["format"] = random.choice([*WRITERS, "", "no such"])
    if random.random() < 0.15:
        options["encoding"] = random.choice(ENCODINGS)
    if random.random() < 0.15:
        names = [name for name in NAMES_OF_COLUMNS if SECRET not in name]  # what the caller says may be repeated
        options["columns"] = {
            random.choice((*NAMES, *names)): random.choice((*NAMES, *names)) for _ in range(random.randint(1, 3))
        }
    if random.random() < 0.1:
        options["time_format"] = random.choice(TIME_FORMATS)
    options["max_bad_rows"] = random.choice((0.01, 0.9, 1.0))
    name = random.choice(["log", "log.20060801", "log.gz", "access_log.99999999", "log.parquet", *PARTITIONED])
    files = {name: data}
    if random.random() < 0.1:
        files["more"] = WRITERS[random.choice(list(WRITERS))](random, good_rows(random), {})
    return Case(files, options)


def good_rows(random: Random) -> list[list[Any]]:
    """Rows of a log, as text: two users for most queries, so that some would be released."""
    rows = []
    for _ in range(random.choice((1, 2, 8, 30))):
        clicked = random.random() < 0.4
        rows.append(
            [
                f"{SECRET}{random.randrange(4)}",
                f"{SECRET} {random.choice(('tea', 'red tea', 'café', 'mug'))}",
                f"2006-03-{random.randint(1, 28):02} {random.randrange(24):02}:00:00",
                str(random.randint(1, 9)) if clicked else "",
                "http://www.example.com" if clicked else "",
            ]
        )
    return rows


def spoiled(random: Random, data: bytes) -> bytes:
    """The bytes, with some of them wrong."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(found) + 1)
        kind = random.randrange(6)
        if kind == 0:
            del found[at:]
        elif kind == 1:
            del found[at : at + random.randint(1, 20)]
        elif kind == 2:
            found[at:at] = found[at // 2 : at // 2 + random.randint(1, 200)]
        elif kind == 3:
            found[at : at + 1] = bytes([random.randrange(256)])
        elif kind == 4:
            found[at:at] = random.choice(
                [b"\x00", b"\r", b"\n", b"\t", b'"', b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"[" * 3000, b"," * 300]
            )
        else:
            found[:0] = random.choice(
                [b"\xef\xbb\xbf", b"\xff\xfe", b"PAR1", b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\n", b"\x00"]
            )
    return bytes(found)


def _tabbed(rows: list[list[str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def _aol(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    head = [["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"]]
    return _tabbed([*(head if random.random() < 0.7 else []), *rows])


def _excite(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    plain = str.maketrans("", "", "- :")
    return _tabbed([[row[0], row[2].translate(plain)[2:] if random.random() < 0.9 else row[2], row[1]] for row in rows])


def _sogou(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    if random.random() < 0.5:
        made = [[row[2][-8:], row[0], f"[{row[1]}]", f"{row[3]} 1", row[4]] for row in rows]
    else:
        plain = str.maketrans("", "", "- :")
        made = [[row[2].translate(plain), row[0], row[1], row[3], "1", row[4]] for row in rows]
    return _tabbed(made).decode().encode(random.choice(["utf-8", "gb18030"]), "replace")


def _headed(random: Random, rows: list[list[Any]]) -> list[list[Any]]:
    """The rows with a header that may be missing or odd, and perhaps with further columns."""
    head: list[Any] = list(NAMES)
    if random.random() < 0.15:
        return rows
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        at = random.randrange(len(head) + 1)
        head.insert(at, random.choice(NAMES_OF_COLUMNS))
        rows = [[*row[:at], f"{SECRET}x", *row[at:]] for row in rows]
    if random.random() < 0.2:
        head[random.randrange(len(head))] = random.choice(NAMES_OF_COLUMNS)
    if random.random() < 0.03:
        more = random.choice((300, 3000))
        head += [f"{SECRET}{i}" for i in range(more)]
        rows = [[*row, *([""] * more)] for row in rows]
    return [head, *rows]


def _csv(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=random.choice(",;|"), lineterminator=random.choice(["\n", "\r\n", "\r"]))
    writer.writerows(_headed(random, rows))
    return out.getvalue().encode("utf-8", "surrogatepass")


def _tsv(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    return _tabbed(_headed(random, rows))


def _hard_value(random: Random) -> Any:
    deep: Any = SECRET
    for _ in range(random.choice((1, 3, 200, 900))):
        deep = [deep] if random.random() < 0.5 else {random.choice(["a", "", "a.b"]): deep}
    return random.choice(
        [
            None,
            True,
            0,
            -1,
            1.5,
            10**30,
            1e300,
            math.inf,
            -math.inf,
            math.nan,
            "",
            [],
            {},
            [SECRET],
            {SECRET: SECRET},
            deep,
            "\x00",
        ]
    )


def _document(random: Random, document: dict[str, Any]) -> dict[str, Any]:
    for _ in range(random.choice((0, 0, 1, 3))):
        key = random.choice((*document, *NAMES_OF_COLUMNS)) if document else ""
        document[key] = _hard_value(random)
    if random.random() < 0.05:
        document |= {f"{SECRET} {i} {random.random()}": i for i in range(random.choice((30, 300)))}
    return document


def _ndjson(random: Random, documents: list[Any]) -> bytes:
    lines = [json.dumps(document, ensure_ascii=random.random() < 0.5) for document in documents]
    for _ in range(random.choice((0, 0, 0, 1))):
        depth = random.choice((10, 1000, 50_000))
        odd = [
            "{}", "[]", "null", "1e999", '"kq7x"', "NaN", "{'user': 1}", "\x00", "9" * 5000, "[" * depth,
            '{"a":' * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth + "]" * depth,
            '{"user":"kq7x","user":"b"}',
            '{"query":"\\ud800"}', '{"user":"kq7x","query":"\\u0000"}', '{"":{"":{"":1}}}',
            '{"user":' + "9" * 5000 + ',"query":"kq7x"}',
        ]  # fmt: skip
        lines.insert(random.choice((0, len(lines))), random.choice(odd))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _results(random: Random, row: list[str]) -> Any:
    """What an event showed, or something else."""
    result = {"url": row[4], "rank": random.choice([row[3], _hard_value(random)]), "clicked": _hard_value(random)}
    lists = ([row[4], "http://a.com"], [result, {"url": "http://a.com"}], [_hard_value(random), result], [[row[4]]], [])
    return random.choice([*lists, *lists, _hard_value(random), [row[4]] * 1001, f"[{row[4]}"])


def _jsonl(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    if random.random() < 0.1:  # map-style: user ids or queries as keys
        return _ndjson(random, [{row[0]: row[1], row[1]: random.choice((row[2], {row[2]: row[3]}))} for row in rows])
    nested, shows = random.random() < 0.2, random.random() < 0.2
    documents = []
    for row in rows:
        document: dict[str, Any] = dict(zip(NAMES, row, strict=True))
        if nested:
            document = {"client": {"id": document.pop("user")}, **document}
        if shows:
            document["results"] = _results(random, row)
            document["clicked"] = random.choice(([row[4]], row[4], _hard_value(random)))
        documents.append(_document(random, document))
    if nested:
        options["columns"] = {
            "user": random.choice(
                ["client.id", "client.", "client..id", ".", "client", 'client."id"', "client.id.x", "client['id"]
            )
        }
    return _ndjson(random, documents)


def _ubi(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    documents: list[Any] = []
    shows = random.random() < 0.3
    for i, row in enumerate(rows):
        query = {"query_id": f"q{i}", "client_id": row[0], "user_query": row[1], "timestamp": row[2]}
        if random.random() < 0.2:
            query["query_attributes"] = {"device": random.choice(["phone", _hard_value(random)])}
        if shows:
            query["query_response_hit_ids"] = _results(random, row)
        made = [_document(random, query)]
        if row[4]:
            at = {
                "object": {"object_id": row[4]},
                "position": {"ordinal": random.choice([row[3], 1, _hard_value(random)])},
            }
            made.append(
                _document(
                    random, {"action_name": "click", "query_id": f"q{i}", "client_id": row[0], "event_attributes": at}
                )
            )
        for document in made:
            if random.random() < 0.2:
                documents.append({"index": {"_index": "ubi_queries"}})
            documents.append({"_source": document} if random.random() < 0.2 else document)
    return _ndjson(random, documents)


_INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
_REALS = [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(20, 3), pa.decimal256(50, 0)]
_TIMES = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in (None, "UTC", "+05:00")] + [
    pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("s"),
]  # fmt: skip
_OTHERS = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(4), pa.bool_(),
    pa.null(), pa.list_(pa.string()), pa.struct([("a", pa.string())]), pa.map_(pa.string(), pa.string()),
    pa.binary_view(), pa.list_(pa.int64(), 2), pa.dictionary(pa.int8(), pa.string()), pa.month_day_nano_interval(),
]  # fmt: skip
_NUMBERS = [
    0,
    1,
    -1,
    7,
    127,
    255,
    32_767,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**31),
    -(2**63),
    -(2**63) + 1,
]


def _column(random: Random, texts: list[str]) -> pa.Array:
    kind = random.choice([*_INTEGERS, *_REALS, *_REALS, *_TIMES, *_TIMES, *_OTHERS])
    n = len(texts)
    try:
        if kind in _INTEGERS:
            return pa.array([random.choice([None, *_NUMBERS]) for _ in range(n)]).cast(kind, safe=False)
        if kind in _REALS:
            values = [
                random.choice([None, 0.0, 1.0, -1.0, 1.5, math.nan, math.inf, -math.inf, 1e300, 65504.0])
                for _ in range(n)
            ]
            return pa.array(values, pa.float64()).cast(kind, safe=False)
        if kind in _TIMES:
            wide = pa.int32() if kind in (pa.date32(), pa.time32("s")) else pa.int64()
            values = [random.choice([None, 0, *_NUMBERS]) for _ in range(n)]
            fits = [v if v is None or abs(v) < 2 ** (wide.bit_width - 1) else 5 for v in values]
            return pa.array(fits, wide).view(kind)
        if pa.types.is_binary(kind) and random.random() < 0.5:
            return pa.Array.from_buffers(pa.string(), n, pa.array([b"\xff\xfe" + t.encode() for t in texts]).buffers())
        if pa.types.is_dictionary(kind):
            return pa.array(texts).dictionary_encode()
        return pa.array(texts).cast(kind, safe=False)
    except (pa.ArrowException, OverflowError):
        return pa.nulls(n, kind)


def make_table(seed: int) -> pa.Table:
    """A hostile Arrow table, with types that no file format holds."""
    random = Random(f"table {seed}")
    return _table(random, good_rows(random))


def _table(random: Random, rows: list[list[str]]) -> pa.Table:
    columns: list[tuple[str, pa.Array]] = [
        (name, pa.array([row[i] for row in rows], pa.string())) for i, name in enumerate(NAMES)
    ]
    for _ in range(random.choice((0, 1, 1, 2))):
        at = random.choice((0, 1, 2, 2, 2, 3, 3, 4))
        columns[at] = (columns[at][0], _column(random, [row[at] for row in rows]))
    for _ in range(random.choice((0, 0, 1, 2))):
        columns.append((random.choice(NAMES_OF_COLUMNS), _column(random, [f"{SECRET}x"] * len(rows))))
    if random.random() < 0.1:
        columns[random.randrange(5)] = (random.choice(NAMES_OF_COLUMNS), columns[0][1])
    if random.random() < 0.02:
        columns += [(f"{SECRET}{i}", pa.nulls(len(rows))) for i in range(300)]
    names, arrays = zip(*columns, strict=True)
    return pa.Table.from_arrays(list(arrays), list(names))


def _parquet(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    table = _table(random, rows)
    fits = [i for i in range(table.num_columns) if _written(table.select([i]))]
    return _written(table.select(fits)) or _written(pa.table({"user": ["a"]}))


def _written(table: pa.Table) -> bytes:
    """The table as Parquet; nothing if Parquet does not hold such columns."""
    out = io.BytesIO()
    try:
        pq.write_table(table, out)
    except (pa.ArrowException, NotImplementedError):
        return b""
    return out.getvalue()


def _json(random: Random, rows: list[list[str]], options: dict[str, Any]) -> bytes:
    lines = [line for line in _jsonl(random, rows, options).split(b"\n") if line.strip()]
    between = random.choice([b",", b",\n", b" ,\r\n  ", b"\n", b",,"])
    opening, closing = random.choice(
        [(b"[", b"]"), (b"[", b"]"), (b" [\n", b"\n]\n"), (b"[", b""), (b"[[", b"]]"), (b"[", b"]]{}")]
    )
    return opening + between.join(lines) + closing


WRITERS = {
    "aol": _aol,
    "excite": _excite,
    "sogou": _sogou,
    "ubi": _ubi,
    "parquet": _parquet,
    "json": _json,
    "jsonl": _jsonl,
    "tsv": _tsv,
    "csv": _csv,
}
