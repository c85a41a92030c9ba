"""What a reviewer decided about queries and words: blocked, or allowed although they look like personal data.

Decisions are a file with one a line, as JSON. Its owner keeps it, and no release contains it.
"""

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from queryveil.errors import QueryveilError
from queryveil.files.folders import check_file, write_whole
from queryveil.kernels.types import Bools
from queryveil.text import Language, normal_form
from queryveil.text.words import holding

SUFFIX = ".jsonl"


def list_bytes(path: Path) -> bytes:
    """The content of a list."""
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise QueryveilError(f"The list {path} is not a regular file; give the file itself.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise QueryveilError(f"The list {path} cannot be read ({error.strerror}).") from None


def list_text(path: Path) -> str:
    """The content of a list, as a text."""
    try:
        return list_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise QueryveilError(f"The list {path} is not UTF-8; convert it first.") from None


def _is_text(text: str) -> str:
    if normal_form(pa.array([text]))[0].as_py() in ("", "-"):
        raise ValueError("it is empty")
    return text


def _is_time(text: str) -> str:
    if text:
        datetime.datetime.fromisoformat(text)
    return text


class Decision(BaseModel):
    """What a person decided about a query or a word.

    Attributes:
        kind: `block`: it is never released. `allow`: rules about how a text looks do not hold it back.
        of: Whether the text is a whole query, or a word or run of words in any query.
        text: The text; case and spaces do not matter.
        comment: Why.
        by: Who decided.
        at: When, as in `2026-04-30T12:00:00`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["block", "allow"]
    of: Literal["query", "word"]
    text: Annotated[str, AfterValidator(_is_text)]
    comment: str = ""
    by: str = ""
    at: Annotated[str, AfterValidator(_is_time)] = ""


class Decisions(NamedTuple):
    """All that was decided, as texts in normal form; of several decisions about a text, the last one counts."""

    blocked_queries: pa.Array
    blocked_words: pa.Array
    allowed_queries: pa.Array
    allowed_words: pa.Array

    def block(self, texts: pa.Array, language: Language) -> Bools:
        """Which texts are blocked, or hold a blocked word."""
        itself: Bools = pc.is_in(texts, value_set=self.blocked_queries).to_numpy(zero_copy_only=False)
        held: Bools = holding(texts, self.blocked_words, language).to_numpy(zero_copy_only=False)
        return itself | held

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> "Decisions":
        """What counts of some decisions."""
        given = list(decisions)
        texts = normal_form(pa.array([one.text for one in given], pa.large_string())).to_pylist()
        last = {(one.of, text): one.kind for one, text in zip(given, texts, strict=True)}
        parts = (("query", "block"), ("word", "block"), ("query", "allow"), ("word", "allow"))
        found = ([text for (of, text), kind in last.items() if (of, kind) == part] for part in parts)
        return cls(*(pa.array(some, pa.large_string()) for some in found))


def read_decisions(path: str | Path) -> tuple[Decision, ...]:
    """The decisions in a file, one a line as JSON.

    Raises:
        QueryveilError: If it cannot be read, or a line is no decision.
    """
    found = []
    # A text may hold what Python takes for the end of a line, so only real ones count.
    for number, line in enumerate(list_text(Path(path)).split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(Decision.model_validate(json.loads(line)))
        except (ValueError, ValidationError, RecursionError):  # which would quote the line
            raise QueryveilError(
                f"Line {number} of the decisions {path} is no decision, such as"
                ' {"kind": "block", "of": "query", "text": "..."}; mend it.'
            ) from None
    return tuple(found)


def write_decisions(decisions: Iterable[Decision], path: str | Path, *, overwrite: bool = False) -> None:
    """Write decisions to a file that only its owner can read.

    Args:
        decisions: The decisions, in the order in which they were made.
        path: The file, which ends with .jsonl.
        overwrite: Whether an earlier file may be replaced.
    """
    place = check_file(path, (SUFFIX,), overwrite)
    lines = "".join(one.model_dump_json() + "\n" for one in decisions)
    write_whole(place, lines.encode(), overwrite=overwrite, private=True)
