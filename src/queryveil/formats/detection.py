"""From the files of a log to its rows: the format is detected automatically, and its module reads them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from types import ModuleType
from typing import NoReturn, Protocol, cast

import pyarrow as pa

from queryveil.errors import QueryveilError, did_you_mean, option
from queryveil.formats import FORMATS
from queryveil.formats.input import Input, ReadAs
from queryveil.formats.rows import CANONICAL, LONGEST_NAME, ReadOptions, Rows, Task, is_column_name, known_columns
from queryveil.formats.source import File, Lines, agreed_encoding, find_files, partitions, roots, sample
from queryveil.formats.table import header_of
from queryveil.formats.times import find_time_format
from queryveil.text.show import printable

_ZIP = b"PK\x03\x04"
_PACKED = (_ZIP, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""How a workbook of Excel begins, and one of before 2007."""


class LineFormat(Protocol):
    """A module that reads a format whose rows are lines."""

    NAMED_COLUMNS: bool
    """Whether its files name their columns, so that the caller may say which is which."""

    def sniff(self, head: bytes) -> bool:
        """Whether a file that starts like this is of the format."""
        ...

    def lines(self, file: str, head: bytes, options: ReadOptions) -> Lines:
        """How the lines of a file with this name and beginning become rows."""
        ...


class NamedFormat(Protocol):
    """A module that reads a format whose files name their columns, beside what the other protocols say."""

    def names(self, file: str | File, head: bytes) -> list[str]:
        """The columns of a file with this beginning."""
        ...


class FileFormat(Protocol):
    """A module that reads a format of another kind."""

    NAMED_COLUMNS: bool
    """Whether its files name their columns, so that the caller may say which is which."""

    def sniff(self, head: bytes) -> bool:
        """Whether a file that starts like this is of the format."""
        ...

    def read(self, files: Sequence[File], options: ReadOptions) -> Iterator[Task]:
        """The rows of the files, as tasks."""
        ...


def detect(file: File, options: ReadOptions | None = None) -> str:
    """The format of a file, detected from its first bytes and the columns that the caller names.

    Raises:
        QueryveilError: If no format fits; the caller must name one.
    """
    return detect_head(str(file), sample(file, None if options is None else options.encoding), options)


def detect_head(file: str, head: bytes, options: ReadOptions | None = None) -> str:
    """The format of a file with this beginning."""
    if not head.strip():
        raise QueryveilError(f"The file {file} is empty.")
    if head.startswith(_PACKED):
        _refuse_packed(file, head)
    named = set(options.columns.values()) if options is not None else set()
    for name in FORMATS:
        if _module(name).sniff(head) or (named and name in ("tsv", "csv") and named <= set(header_of(name, head))):
            return name
    if b"\0" in head:
        raise QueryveilError(
            f"The file {file} has zero bytes in its first lines, so it is no text in UTF-8; if it is text, name its"
            f" encoding with {option('encoding', 'utf-16-le')} or another."
        )
    raise QueryveilError(
        f"The format of {file} cannot be detected from its first lines; name it with {option('format')} "
        f"({', '.join(FORMATS)}), and the columns with {option('columns', {'user': 'NAME', 'query': 'NAME'})} if they"
        " have other names."
    )


def _refuse_packed(file: str, head: bytes) -> NoReturn:
    """Say how a workbook, or another packed file, becomes a log."""
    if head.startswith(_ZIP) and not any(part in head for part in (b"[Content_Types].xml", b"xl/")):
        raise QueryveilError(f"The file {file} is a ZIP archive; unpack it, and name the files in it.")
    name = file if re.fullmatch(r"[\w./ -]+", file) else "FILE.xlsx"
    script = f"import polars; polars.read_excel('{name}').write_csv('{PurePath(name).stem}.csv')"
    raise QueryveilError(
        f"{file} is an Excel workbook; save it as 'CSV UTF-8' in Excel, or convert its first sheet with: pip install"
        f' polars fastexcel && python -c "{script}"'
    )


def tasks(
    paths: Sequence[str | Path], format_name: str | None, options: ReadOptions, stated: Input | None = None
) -> tuple[ReadAs, Iterator[Task]]:
    """The rows of a log, in tasks, and how it is read.

    Args:
        paths: The log.
        format_name: Its format, if the caller names it.
        options: What the caller says about the files.
        stated: What a manifest says about them.
    """
    files = find_files(paths)
    encoding = agreed_encoding(files, stated.encoding) if options.encoding is None and stated is not None else None
    if encoding is not None:
        options = replace(options, encoding=encoding)
    full, formats = [], {}
    for file in files:
        head = sample(file, options.encoding)
        if head.strip():  # empty files among several are normal: logs rotate
            full.append(file)
            formats[format_name or detect_head(str(file), head, options)] = file
    if not full:
        raise QueryveilError(f"The file {files[0]} is empty.")
    if len(formats) > 1:
        kinds = ", ".join(f"{file} is {name}" for name, file in formats.items())
        raise QueryveilError(
            f"The files have several formats ({kinds}); read them separately, or name one with {option('format')}."
        )
    named = format_name is not None
    format_name = format_name or agreed_format(next(iter(formats)), stated)
    check_format(format_name, options)
    below = roots(paths)
    folders = {str(file): partitions(str(file), below) for file in full}
    head = sample(full[0], options.encoding)
    chosen, read_as = agreed(format_name, full[0], head, options, stated, folders.values())
    by_manifest = read_as.stated if encoding is None else (*read_as.stated, "encoding")
    read_as = replace(read_as, named=named, stated=by_manifest)
    parser = line_format(format_name)
    made: Iterator[Task]
    if parser is not None:
        made = (
            task
            for file in full
            for task in parser.lines(str(file), sample(file, options.encoding), chosen).tasks(file)
        )
    else:
        made = cast(FileFormat, _module(format_name)).read(full, chosen)
    if any(folders.values()):
        made = (partial(_with_folders, task, folders, read_as.columns) for task in made)
    return read_as, made


def agreed_format(detected: str, stated: Input | None) -> str:
    """The format of a log, if what a manifest says about it is the same as what was detected."""
    if stated is not None and stated.format not in (None, detected):
        raise QueryveilError(
            f"The log looks like {detected}, but the manifest of the release says that it is {stated.format}; say which"
            f" with {option('format', detected)} or {option('format', stated.format)}."
        )
    return detected


def agreed(
    format_name: str,
    file: str | File,
    head: bytes,
    options: ReadOptions,
    stated: Input | None,
    folders: Iterable[Mapping[str, str]] = (),
) -> tuple[ReadOptions, ReadAs]:
    """Which column is which: what the caller says first, then the usual names, and then what a manifest says.

    Args:
        format_name: The format of the log.
        file: Its first file.
        head: The beginning of it.
        options: What the caller says.
        stated: What a manifest says.
        folders: What the folders of a partitioned log say about its files.
    """
    module = _module(format_name)
    names = cast(NamedFormat, module).names(file, head) if module.NAMED_COLUMNS else []
    every = dict.fromkeys(name for each in folders for name in each)
    of_folders = [name for name in every if name not in names]
    if len({name.casefold() for name in (*names, *of_folders)}) < len({*names, *of_folders}):
        raise QueryveilError(
            "Two columns or folders of the log have the same name except for case; rename one of them."
        )
    options, read_as = agreed_columns(names, options, stated, of_folders, fixed=not module.NAMED_COLUMNS)
    inside = {name: column for name, column in options.columns.items() if column not in of_folders}
    return replace(options, columns=inside), replace(read_as, format=format_name, encoding=options.encoding)


def agreed_columns(
    names: Sequence[str],
    options: ReadOptions,
    stated: Input | None,
    of_folders: Sequence[str] = (),
    *,
    fixed: bool = False,
) -> tuple[ReadOptions, ReadAs]:
    """Which of these columns is which, as `agreed` says.

    A manifest may come from anybody. If it could say that the number of a row is the user, each row would be a person,
    and any release would keep its promises. So it only names what the usual names leave open, it never contradicts
    them, it takes no column away from them, and its user counts only if the caller names the same one. Who is the user
    and what is the query is decided here, once for all files.

    Args:
        names: The columns.
        options: What the caller says.
        stated: What a manifest says.
        of_folders: What the folders of a partitioned log name; by its usual name this can only be the time.
        fixed: Whether the format decides which column is which.
    """
    taken = set(options.columns.values())
    guessed = known_columns([name for name in names if name not in taken]) if not fixed else {}
    if "time" not in guessed:
        guessed |= {name: column for name, column in known_columns(of_folders).items() if name == "time"}
    guessed = {name: column for name, column in guessed.items() if name not in options.columns}
    columns = dict(options.columns)
    for name, column in ({} if stated is None or fixed else stated.columns).items():
        if name in options.columns or guessed.get(name) == column:
            continue
        there = column in (*names, *of_folders)
        named = option("columns", {name: printable(column) if there else "NAME"})
        if name in guessed:
            other = printable(guessed[name])
            raise QueryveilError(
                f"The manifest of the release says that the {name} is in column '{printable(column)}', but by its name"
                f" column '{other}' looks like it; say which with {named} or {option('columns', {name: other})}."
            )
        if name == "user":
            raise QueryveilError(
                f"Nothing but the manifest of the release says that the user is in column '{printable(column)}'; if"
                f" each person has one value there, say so with {named}."
                if there
                else "The manifest of the release says that the user is in a column that is not at the beginning of the"
                f" log; name the column with {named}."
            )
        has = next((has for has, used in {**guessed, **columns}.items() if used == column), None)
        if has is not None:
            raise QueryveilError(
                f"The manifest of the release says that column '{printable(column)}' is the {printable(name)}, but it"
                f" is the {printable(has)}; say which column is which with"
                f" {option('columns', {has: printable(column)})}."
            )
        if there or "." in column:
            columns[name] = column
    found = {name: column for name, column in {**guessed, **columns}.items() if name in CANONICAL or name != column}
    if any(
        len(name) > LONGEST_NAME or not column.isprintable() or len(column) > LONGEST_NAME
        for name, column in found.items()
    ):
        raise QueryveilError(
            f"A column of {option('columns')} has a name with a control character, or with over {LONGEST_NAME}"
            " characters; rename it."
        )
    given = options.columns
    needed = {name: column for name, column in guessed.items() if name in ("user", "query")}
    options = replace(options, columns=columns, found=needed)
    return options, ReadAs(
        columns=found,
        guessed=tuple(guessed),
        stated=tuple(name for name in columns if name not in given),
        time_format=options.time_format,
    )


def timed(read_as: ReadAs, times: pa.Array | None, where: str, stated: Input | None) -> ReadAs:
    """How a log is read whose first rows have these times; a manifest says so only where they leave it open."""
    if read_as.time_format is not None or times is None or pa.types.is_timestamp(times.type):
        return read_as
    by_manifest = None if stated is None else stated.time_format
    found = find_time_format(times, where, dated=bool(read_as.columns), stated=by_manifest)
    if found is None:
        return read_as
    if found == by_manifest:
        return replace(read_as, time_format=found, stated=(*read_as.stated, "time_format"))
    return replace(read_as, time_format=found, guessed=(*read_as.guessed, "time_format"))


def _with_folders(task: Task, folders: Mapping[str, Mapping[str, str]], columns: Mapping[str, str]) -> Rows:
    rows = task()
    return with_folders(rows, folders[rows.file], columns)


def with_folders(rows: Rows, folders: Mapping[str, str], columns: Mapping[str, str]) -> Rows:
    """Rows with columns of what the folders of their file say.

    Args:
        rows: The rows.
        folders: Name and value of each folder.
        columns: Which column is which.
    """
    called = {column: name for name, column in columns.items()}
    for folder, value in folders.items():
        name = called.get(folder, folder)
        if name in CANONICAL and name != "time":
            raise QueryveilError(f"The folders of a log cannot name the {name} of its rows; rename them.")
        if not is_column_name(name):
            raise QueryveilError("A folder of the log names a column with a quote or no letters; rename the folder.")
        if name not in rows.columns:
            if name.casefold() in {other.casefold() for other in rows.columns}:
                raise QueryveilError(
                    "A folder of the log names a column that its files have, in another case; rename the folder."
                )
            rows.columns[name] = pa.repeat(pa.scalar(value or None, pa.string()), len(rows.line))
    return rows


def check_format(name: str, options: ReadOptions) -> None:
    """Refuse a format that does not exist, or whose columns cannot be named."""
    if name not in FORMATS:
        raise QueryveilError(f"There is no format '{name}'; {did_you_mean(name, FORMATS)}.")
    if options.columns and not _module(name).NAMED_COLUMNS:
        others = ", ".join(other for other in FORMATS if _module(other).NAMED_COLUMNS)
        raise QueryveilError(f"The columns of the {name} format are fixed; {option('columns')} is for {others}.")


def line_format(name: str) -> LineFormat | None:
    """The module of a format whose rows are lines, None for any other."""
    module = _module(name)
    return cast(LineFormat, module) if hasattr(module, "lines") else None


def _module(name: str) -> ModuleType:
    return import_module(f"queryveil.formats.{name}")
