"""The list of fragments that were allowed once and stay allowed: each with the date since when.

The publisher keeps it from release to release, readable by its owner only. `queryveil fragments` writes it, `rules` and
the verifier read it, and no release contains it. It is text with one fragment a line, a tab, and a date.
"""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.scrubbing.decisions import list_text
from queryveil.text import language, normal_form

SUFFIX = ".tsv"
_SCHEMA = pa.schema([("fragment", pa.string()), ("since", pa.string())])


def read_fragments(path: Path) -> pa.Table:
    """The `fragment`s on a list, as words with a blank between them, each with the date `since` when it is allowed.

    Raises:
        QueryveilError: If it cannot be read, or a line is not a fragment and a date.
    """
    lines = list_text(path).splitlines()
    rows = [(number, *line.partition("\t")[::2]) for number, line in enumerate(lines, 1) if line.strip()]
    wrong = next((number for number, fragment, since in rows if not fragment.strip() or not _is_date(since)), None)
    if wrong is not None:
        raise QueryveilError(
            f"Line {wrong} of the list {path} is not a fragment, a tab and a date such as 2026-04-30; mend it."
        )
    tomorrow = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).date().isoformat()
    later = next((number for number, _, since in rows if since.strip() > tomorrow), None)
    if later is not None:
        raise QueryveilError(f"Line {later} of the list {path} has a date in the future; mend it.")
    texts = normal_form(pa.array([fragment for _, fragment, _ in rows], pa.large_string()))
    return pa.table([as_words(texts), pa.array([since for *_, since in rows], pa.string())], schema=_SCHEMA)


def as_words(texts: pa.Array) -> pa.Array:
    """Texts in normal form as their words, with a blank between them."""
    split = language().words(texts)
    words = split.text.cast(pa.string())
    lists = pa.ListArray.from_arrays(pa.array(offsets(split.per_query).astype(np.int32)), words)
    return pc.binary_join(lists, " ")


def write_fragments(fragments: pa.Table, place: Path, *, overwrite: bool = False) -> int:
    """Write a list that only its owner can read, sorted, with the earliest date of each fragment.

    Args:
        fragments: As `read_fragments` returns them.
        place: The file, as `check_file` returned it.
        overwrite: Whether an earlier file may be replaced.

    Returns:
        How many there are.
    """
    first = fragments.group_by("fragment").aggregate([("since", "min")]).sort_by("fragment")
    lines = pc.binary_join_element_wise(first["fragment"], first["since_min"], "\t")
    text = "".join(f"{line}\n" for line in lines.to_pylist())
    write_whole(place, text.encode(), overwrite=overwrite, private=True)
    return len(first)


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text.strip()).isoformat() == text.strip()
    except ValueError:
        return False
