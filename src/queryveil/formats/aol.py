"""The format of the AOL log of 2006: AnonID, Query, QueryTime, ItemRank, ClickURL, tab separated, nothing quoted.

An event with several clicks spans several rows; one without a click leaves the last two fields empty. All files, some
of them or none have a header.
"""

import re

from queryveil.formats.delimited import Layout, delimited_lines, mostly
from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines
from queryveil.formats.table import header, looks_like

NAMED_COLUMNS = False
HEADER = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
_LAYOUT = Layout(columns=("user", "query", "time", "rank", "url"), counts=(3, 5), header=HEADER)
_ROW = re.compile(rb"[^\t]+\t[^\t]*\t\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\t\d*\t[^\t]*)?\r?")


def sniff(head: bytes) -> bool:
    """Whether the first lines have the five columns, or a time as the third."""
    if [name.lower() for name in header(head, "\t")] == [name.lower() for name in HEADER]:
        return True
    if looks_like(head, "\t"):
        return False  # a header of its own: plain TSV
    return mostly(_ROW, head)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of AOL files become rows."""
    return delimited_lines(_LAYOUT, options.encoding or "utf-8")
