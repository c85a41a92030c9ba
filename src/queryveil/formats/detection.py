"""From the files of a log to its rows: the format is detected automatically, and its module reads them."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from queryveil.errors import QueryveilError, did_you_mean, option
from queryveil.formats import FORMATS
from queryveil.formats.rows import ReadOptions, Task
from queryveil.formats.source import Lines, find_files, sample
from queryveil.formats.table import header_of


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


class FileFormat(Protocol):
    """A module that reads a format of another kind."""

    NAMED_COLUMNS: bool
    """Whether its files name their columns, so that the caller may say which is which."""

    def sniff(self, head: bytes) -> bool:
        """Whether a file that starts like this is of the format."""
        ...

    def read(self, files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
        """The rows of the files, as tasks."""
        ...


def detect(file: Path, options: ReadOptions | None = None) -> str:
    """The format of a file, detected from its first bytes and the columns that the caller names.

    Raises:
        QueryveilError: If no format fits; the caller must name one.
    """
    return detect_head(str(file), sample(file), options)


def detect_head(file: str, head: bytes, options: ReadOptions | None = None) -> str:
    """The format of a file with this beginning."""
    if not head.strip():
        raise QueryveilError(f"The file {file} is empty.")
    named = set(options.columns.values()) if options is not None else set()
    for name in FORMATS:
        if _module(name).sniff(head) or (named and name in ("tsv", "csv") and named <= set(header_of(name, head))):
            return name
    raise QueryveilError(
        f"The format of {file} cannot be detected from its first lines; name it with {option('format')} "
        f"({', '.join(FORMATS)}), and the columns with {option('columns', {'user': 'NAME', 'query': 'NAME'})} if they"
        " have other names."
    )


def tasks(paths: Sequence[str | Path], format_name: str | None, options: ReadOptions) -> tuple[str, Iterator[Task]]:
    """The rows of a log, in tasks, and the name of its format."""
    files = find_files(paths)
    # Empty files among several are normal: logs rotate.
    full = [file for file in files if sample(file).strip()]
    if not full:
        raise QueryveilError(f"The file {files[0]} is empty.")
    if format_name is None:
        found = {detect(file, options): file for file in full}
        if len(found) > 1:
            kinds = ", ".join(f"{file} is {name}" for name, file in found.items())
            raise QueryveilError(
                f"The files have several formats ({kinds}); read them separately, or name one with {option('format')}."
            )
        format_name = next(iter(found))
    check_format(format_name, options)
    parser = line_format(format_name)
    if parser is not None:
        return format_name, (
            task for file in full for task in parser.lines(str(file), sample(file), options).tasks(file)
        )
    return format_name, cast(FileFormat, _module(format_name)).read(full, options)


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
