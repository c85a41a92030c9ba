r"""The format of SogouQ, the log of the Sogou engine: time, user, [query], rank and order, URL; GB18030.

There are two versions: `hh:mm:ss \t user \t [query] \t rank order \t url`, and one with a full time, no brackets and a
tab between rank and order. Both are read. A time without a date gets the date in the name of the file
(`access_log.20060801`), else 1970-01-01.
"""

import re
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.formats.delimited import Layout, delimited_lines, mostly
from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines

NAMED_COLUMNS = False
_ROW = re.compile(rb"(\d\d:\d\d:\d\d|\d{14})\t[^\t]+\t[^\t]*\t\d+[\t ]+\d+\t[^\t]*\r?")
_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)([01]\d)([0-3]\d)(?!\d)")


def sniff(head: bytes) -> bool:
    """Whether most of the first lines are a time, a user, a query, two numbers and an address."""
    return mostly(_ROW, head)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of SogouQ files become rows."""
    day = _DAY.search(Path(file).name)
    layout = Layout(
        columns=("time", "user", "query", "rank", "a", "b"),
        counts=(5, 6),
        finish=partial(_finish, day="-".join(day.groups()) if day else None),
    )
    return delimited_lines(layout, options.encoding or _encoding(head))


def _encoding(head: bytes) -> str:
    # A few bytes of GB18030 text are almost never valid UTF-8; the last character of the sample may be cut.
    try:
        head[: head.rfind(b"\n") + 1].decode("utf-8")
    except UnicodeDecodeError:
        return "gb18030"
    return "utf-8"


def _finish(columns: dict[str, pa.Array], day: str | None) -> dict[str, pa.Array]:
    # With five fields the fourth is `rank order` and the fifth the address; with six they are one each.
    rank = pc.replace_substring_regex(columns["rank"], r"\s.*$", "")
    url = pc.if_else(pc.match_substring(columns["rank"], " "), columns["a"], columns["b"])
    query = pc.replace_substring_regex(columns["query"], r"^\[(.*)\]$", r"\1")
    time = columns["time"]
    if day is not None:
        bare = pc.match_substring_regex(time, r"^\d\d:")
        time = pc.if_else(bare, pc.binary_join_element_wise(day, time, " "), time)
    return {"user": columns["user"], "query": query, "time": time, "rank": rank, "url": url}
