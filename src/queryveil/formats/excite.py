"""The format of the Excite logs of 1997 to 2001: user, yymmddhhmmss, query, tab separated, no clicks."""

import re

from queryveil.formats.delimited import Layout, delimited_lines, mostly
from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines

NAMED_COLUMNS = False
_LAYOUT = Layout(columns=("user", "time", "query"), counts=(3,))
_ROW = re.compile(rb"[^\t]+\t\d{12}\t[^\t]*\r?")


def sniff(head: bytes) -> bool:
    """Whether most of the first lines have twelve digits between two tabs."""
    return mostly(_ROW, head)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of Excite files become rows."""
    return delimited_lines(_LAYOUT, options.encoding or "utf-8")
