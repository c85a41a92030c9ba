"""A JSON array of objects, as one file; what is said of JSON Lines is true of its objects.

The array is turned into lines as it is read, so it may be of any size. Lines are counted as objects.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from queryveil.errors import QueryveilError
from queryveil.formats import jsonl
from queryveil.formats.rows import ReadOptions, Task
from queryveil.formats.source import File, blocks, sample
from queryveil.kernels.types import Longs

NAMED_COLUMNS = True
_ARRAY = re.compile(rb"\s*\[\s*\{")


def sniff(head: bytes) -> bool:
    """Whether the file opens with a bracket and an object."""
    return _ARRAY.match(head) is not None


def names(file: object, head: bytes) -> list[str]:
    """The keys of the first objects."""
    return jsonl.names(file, lines_of(head))


def lines_of(head: bytes) -> bytes:
    """The beginning of an array as lines."""
    from queryveil.kernels.json_array import begin

    return _lines(begin(), head)


def read(files: Sequence[File], options: ReadOptions) -> Iterator[Task]:
    """The objects of the arrays, as rows."""
    from queryveil.kernels.json_array import DEPTH, IN_TEXT, begin

    for file in files:
        head = lines_of(sample(file, options.encoding))
        state = begin()
        how = jsonl.lines(str(file), head, options)
        for block in blocks(file, encoding=how.encoding, through=partial(_lines, state)):
            yield partial(how.parse, block)
        if state[DEPTH] or state[IN_TEXT]:
            raise QueryveilError(f"The JSON array in {file} has no end; it is cut off, so fetch or write it again.")


def _lines(state: Longs, data: bytes) -> bytes:
    from queryveil.kernels.json_array import to_lines

    made = np.frombuffer(data, np.uint8).copy()
    to_lines(made, state)
    return made.tobytes()
