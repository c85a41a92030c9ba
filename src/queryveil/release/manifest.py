"""The manifest of a release: everything needed to check it, and to make it again from the same log."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from queryveil import __version__
from queryveil.claims import AnyClaim
from queryveil.log import QueryLog, Scrub
from queryveil.release.bands import Band
from queryveil.release.linkage import Linkage

FORMAT_VERSION = 2
SOFTWARE = f"queryveil {__version__}"


class Counts(BaseModel):
    """How much of everything there is."""

    model_config = ConfigDict(frozen=True)
    rows: int
    events: int
    users: int | None
    """None where no user ids are released."""
    queries: int
    clicks: int
    sessions: int | None = None
    """None where no session ids are released."""


NOT_TOLD = Counts(rows=0, events=0, users=None, queries=0, clicks=0)
"""In the place of what a log holds, where exact numbers would break a promise of differential privacy."""


_FILES = ("allow_list", "block_list", "key_file", "taxonomy")


def names_a_file(value: object) -> bool:
    """Whether the value is the name of a file alone: no folder around it, and nothing that a terminal obeys."""
    alone = isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\\")
    return alone and str(value).isprintable() and len(str(value)) < 256


Kind = Literal["events", "sessions", "records", "items", "tokens", "counts"]
"""What is released: events without links, sessions, records of users or of groups, nodes of a taxonomy in the place of
queries, tokens in the place of words, or a differentially private set of queries, with counts or without."""


class Manifest(BaseModel):
    """What a release is and promises."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format_version: int = FORMAT_VERSION
    software: str = SOFTWARE
    method: str
    kind: Kind
    parameters: dict[str, Any]
    claims: tuple[AnyClaim, ...]
    limits: tuple[str, ...] = ()
    """What the method does not promise, in plain words."""
    scrub: Scrub | None = None
    """How the log was scrubbed before the method saw it, and what was found."""
    linkage: Linkage | None = None
    """How far background knowledge leads in the release, as its maker measured it; None where nothing is linked, or
    nothing could be measured."""
    input_fingerprint: str | None
    """A digest of the original log under a key that follows from the seed; None where the release is differentially
    private, because it would tell something exact of the log."""
    input_counts: Counts
    counts: Counts
    bands: tuple[Band, ...]
    columns: tuple[str, ...]
    table: str = ""
    files: dict[str, str] = {}
    """The SHA-256 of every file of the release but the manifest."""

    @field_validator("parameters")
    @classmethod
    def _names_no_path(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Refuse a path: a manifest is a stranger's word, and what it names may be opened."""
        for value in (parameters.get(name) for name in _FILES):
            if value is not None and not names_a_file(value):
                raise ValueError("files are named without the folders around them")
        return parameters


def written(manifest: Manifest) -> bytes:
    """A manifest as a release holds it: there is one way to write it, so that nothing hides in how it is written."""
    return (manifest.model_dump_json(indent=2) + "\n").encode()


def counts_of(log: QueryLog) -> Counts:
    """How much there is in a log."""
    return Counts(
        rows=log.stats.rows,
        events=log.stats.events,
        users=log.stats.users,
        queries=log.stats.queries,
        clicks=log.stats.clicks,
    )
