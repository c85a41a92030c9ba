"""The lists of texts that a publisher keeps: what is allowed, what is blocked, and what a reviewer decided.

They hold queries that are not released, so no release contains them. Methods apply them, the verifier reads them again,
and the manifest says how long each is, with a digest that says nothing to anybody without the seed and the log.
"""

import hashlib
import hmac
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from queryveil.log import QueryLog
from queryveil.scrubbing.decisions import list_bytes, list_text
from queryveil.text import normal_form


class StatedList(BaseModel):
    """What a manifest says about a list."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    entries: int = Field(ge=0)
    """Its lines with anything on them."""
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    """A digest of the file under a key that follows from the seed and the log."""


def stated_list(path: Path, log: QueryLog, seed: int) -> StatedList:
    """What the manifest of a release says about a list that it was made with."""
    content = list_bytes(path)
    digest = hmac.new(log.list_key(seed), content, hashlib.sha256).hexdigest()
    return StatedList(entries=sum(bool(line.strip()) for line in content.splitlines()), digest=digest)


def read_texts(path: Path) -> pa.Array:
    """The entries of a list of texts, one a line, in normal form."""
    entries = normal_form(pa.array(list_text(path).splitlines(), pa.large_string()))
    return entries.filter(pc.not_equal(entries, ""))


def rest_of(query: str, phrases: set[tuple[str, ...]]) -> str:
    """A query without the phrases that stand in it between blanks."""
    words = query.split(" ")
    runs = [range(at, at + size) for size in {len(one) for one in phrases} for at in range(len(words) - size + 1)]
    gone = {place for run in runs if tuple(words[run.start : run.stop]) in phrases for place in run}
    return " ".join(word for place, word in enumerate(words) if place not in gone)
