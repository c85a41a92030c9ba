"""How the files of a log are read: what a recipe or a manifest says about it, and what was found on reading."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queryveil.errors import QueryveilError
from queryveil.formats import FORMATS
from queryveil.formats.rows import LONGEST_NAME, MOST_COLUMNS, is_column_name
from queryveil.formats.times import check_time_format
from queryveil.text.show import printable

_ENCODINGS = frozenset(
    (
        *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii"),
        *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
        *(f"cp125{part}" for part in range(9)),
        *("cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp862"),
        *("cp863", "cp865", "cp866", "cp869", "cp874", "cp1125", "koi8-r", "koi8-u", "koi8-t", "kz1048"),
        *("mac-roman", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish", "mac-iceland", "tis-620", "ptcp154"),
        *("gb18030", "gbk", "gb2312", "big5", "big5hkscs", "cp950"),
        *("shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"),
    )
)
"""Encodings in which the same bytes are the same text everywhere. Others have escapes, or a state that lasts."""


def checked_encoding(encoding: str | None) -> str | None:
    """The encoding under its usual name; None for UTF-8.

    Raises:
        QueryveilError: If there is none of this name, or if it is not one for text in lines.
    """
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise QueryveilError(
            f"There is no encoding '{printable(encoding)}'; try utf-8, latin-1, utf-16 or gb18030."
        ) from None
    if name not in _ENCODINGS:
        raise QueryveilError(f"Files in {name} cannot be read line by line; convert them to UTF-8 first.")
    return None if name in ("utf-8", "utf-8-sig") else name  # a byte order mark is skipped anyway


def _format(name: str) -> str:
    if name not in FORMATS:
        raise ValueError(f"there are the formats {', '.join(FORMATS)}")
    return name


def _column(name: str) -> str:
    if not is_column_name(name):
        raise ValueError("a column has a name without quotes and control characters")
    return name


def _encoding(name: str) -> str | None:
    try:
        return checked_encoding(name)
    except QueryveilError as error:
        raise ValueError(str(error).removesuffix(".")) from None


def _time_format(format: str) -> str:
    try:
        return check_time_format(format)
    except QueryveilError as error:
        raise ValueError(str(error).removesuffix(".")) from None


_Column = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_column)]


class Input(BaseModel):
    """How to read a log, where its files do not say so: a manifest has no more than names.

    It may come from anybody. What a manifest says is used only where the files leave it open, and never to decide who
    is a user: see `queryveil.formats.detection.agreed`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Annotated[str, AfterValidator(_format)] | None = None
    columns: dict[_Column, _Column] = Field(default={}, max_length=MOST_COLUMNS)
    """`user`, `query`, `time` and so on, or the name of an extra column -> the column in the files."""
    encoding: Annotated[str, Field(max_length=40), AfterValidator(_encoding)] | None = None
    time_format: Annotated[str, Field(max_length=100), AfterValidator(_time_format)] | None = None


@dataclass(frozen=True)
class ReadAs:
    """How a log was read.

    Attributes:
        format: The format; None for a table that is no file.
        columns: `user`, `query`, `time` and so on, and extra columns with another name than in the files -> the column
            there; empty for formats with fixed columns.
        guessed: Which of these columns were found by their names; `time_format`, if the first rows showed it.
        stated: Which of them only the manifest of a release names; `encoding` and `time_format`, if it names these.
        encoding: The encoding; None for UTF-8, and for tables.
        time_format: How times are written; None for the forms that need no format.
        named: Whether the caller named the format.
    """

    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    encoding: str | None = None
    time_format: str | None = None
    named: bool = False

    @property
    def kept(self) -> Input | None:
        """What a manifest says about it: names that are not the usual ones; None if there is nothing to say."""
        kept = Input(
            format=self.format if self.named else None,
            columns={name: at for name, at in self.columns.items() if name != at and is_column_name(at)},
            encoding=self.encoding,
            time_format=self.time_format,
        )
        return None if kept == Input() else kept
