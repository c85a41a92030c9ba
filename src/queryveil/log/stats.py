"""Statistics of a whole log: how much there is of everything, and how it was scrubbed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from queryveil.formats.input import ReadAs
from queryveil.formats.rows import BadRows


class Hits(BaseModel):
    """How much of a log has personal data of a kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    urls: int = 0
    """Distinct addresses that were clicked, or shown if the log says so."""
    clicks: int = 0
    """Clicks on these addresses."""


class Spent(BaseModel):
    """How much privacy all releases of a series have used together."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    epsilon: float = Field(ge=0, allow_inf_nan=False)
    delta: float = Field(ge=0, le=1)


class SeriesPlace(BaseModel):
    """Where in its series a release is."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    number: int = Field(ge=1, le=1_000_000)
    """Its number, from 1."""
    previous: str | None = Field(pattern="^[0-9a-f]{64}$")
    """The SHA-256 of the manifest of the release before it; None for the first."""
    spent: Spent | None = None
    """What this release and those before it use of the privacy budget, if the method is differentially private."""


class Viewed(BaseModel):
    """Counts of a log or a release that may have views; without any, none are written."""

    views: int | None = None
    """Results that were shown, clicked or not; None if only clicks are known."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        made: dict[str, Any] = write(self)
        return {name: value for name, value in made.items() if name != "views" or value is not None}

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What is shown of it, in the order of counts."""
        shown = dict(super().__repr_args__())
        views = shown.pop("views")
        return (shown if views is None else shown | {"views": views}).items()


class Size(Viewed):
    """How much there is in a log."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    users: int
    clicks: int


class Scrub(BaseModel):
    """How a log was scrubbed, and what was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    how: Literal["remove", "mask"]
    kinds: tuple[str, ...]
    rare_term_users: int | None
    countries: tuple[str, ...] | None = None
    """Whose numbers were looked for; None for what is looked for in English logs."""
    packages: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z-]{1,40}$")],
        Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+]{0,40}$")],
    ] = {}
    """The versions of the packages that know the numbers of countries; another may find others."""
    hits: dict[str, Hits]
    """By kind; a query or an address with several kinds counts for each."""
    total: Hits
    """What has any kind."""
    left_out: Hits = Hits(queries=0, events=0)
    """What of it is not in the scrubbed log: with `remove` all of it, with `mask` queries with no word left."""
    log: Size | None = None
    """How much there was before; None if it is not published."""
    decisions: str | None = None
    """The file of decisions that allow queries as they are."""

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As it is written in a manifest: nothing of countries, packages or decisions if there are none."""
        written: dict[str, Any] = handler(self)
        empty = {name for name in ("countries", "packages", "decisions") if not getattr(self, name)}
        return {name: value for name, value in written.items() if name not in empty}

    @property
    def without_counts(self) -> "Scrub":
        """The same without the counts of hits: they are exact, so a differentially private release cannot have them."""
        nothing = Hits(queries=0, events=0)
        return self.model_copy(update={"hits": {}, "total": nothing, "left_out": nothing, "log": None})


@dataclass(frozen=True)
class LogStats:
    """Statistics of a whole log."""

    rows: int
    """Rows that were read and kept. For a scrubbed log, the rows that it would have when written: one per click
    (in a log of views, one per result shown), and one per event without any; repeated rows of an event count once."""
    events: int
    users: int
    queries: int
    words: int
    """Distinct words."""
    clicks: int
    timed: int
    """Events that have a time."""
    extras: tuple[str, ...]
    """The names of the extra columns."""
    empty_rows: int
    """Rows with an empty query, which are not events."""
    bad_rows: BadRows
    """Rows that were left out, by kind."""
    content: bytes
    """A digest of all rows, independent of their order; for a scrubbed log, of the rows of the original."""
    scrub: Scrub | None = None
    """How the log was scrubbed, if it was."""
    series: SeriesPlace | None = None
    """Where in its series a release of the log is, if its events wait in one."""
    views: int = 0
    """Results that were shown, clicked or not; 0 if the log has clicks alone."""
    read_as: ReadAs | None = None
    """How the files of the log were read, and which columns were found by their names; None if nobody read files."""
