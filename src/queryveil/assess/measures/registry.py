"""What a measure is, and all of them by their ids. A measure registers where it is written: `@measure(...)`."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

import pyarrow as pa

from queryveil.assess.measures.counts import pseudonym
from queryveil.assess.measures.records import UserRecords, user_records
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links, Taxonomy, categorize
from queryveil.log import LocalLog
from queryveil.release import Release

T = TypeVar("T")

Group = Literal["retention", "distribution", "profiles", "task", "labelled"]
GROUPS: dict[Group, str] = {
    "retention": "How much is kept",
    "distribution": "How frequent things are",
    "profiles": "Profiles of users",
    "task": "Tasks that learn from the release",
    "labelled": "Labelled queries",
}
"""Groups of measures, in the order in which they are measured and shown."""


@dataclass(frozen=True)
class Assessment:
    """A release and what is needed to measure it; what several measures need is made once."""

    release: Release
    log: LocalLog
    taxonomy: Taxonomy
    tests: int = 2_000
    seed: int = 0
    sensitive: pa.Table | None = None
    _made: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a function makes, made at the first call; its error as well."""
        if key not in self._made:
            try:
                self._made[key] = make()
            except QueryveilError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, QueryveilError):
            raise made
        return cast(T, made)

    @property
    def has_queries(self) -> bool:
        """Whether there is a column of queries."""
        return "query" in self.release.schema.names

    @property
    def terms(self) -> Links:
        """The categories of the terms of the log."""
        return self.once("terms", lambda: categorize(self.log, self.taxonomy, "terms"))

    @property
    def phrases(self) -> Links:
        """The categories of the phrases of the log."""
        return self.once("phrases", lambda: categorize(self.log, self.taxonomy, "phrases"))

    @property
    def records(self) -> UserRecords:
        """What every user has in the log and in the release.

        Raises:
            QueryveilError: If the release has no records, or does not know whose they are.
        """
        if pseudonym(self.release) is None or not self.has_queries:
            raise QueryveilError("it is for releases of queries with user or session ids")
        return self.once("records", lambda: user_records(self.release, "It"))


@dataclass(frozen=True)
class Value:
    """What a measure found.

    Attributes:
        value: The number; None where the measure does not apply.
        why: Why it does not apply, or what is to be known of it.
        detail: Which of several numbers of a measure it is, such as a level or a frequency band.
        best: What the log itself has; by default the best that there is.
        separates: Whether releases can be ranked by it; `why` says why not.
    """

    value: float | None
    why: str = ""
    detail: str = ""
    best: float | None = None
    separates: bool = True


@dataclass(frozen=True)
class Measure:
    """A measure, as everybody else knows it.

    Attributes:
        id: What it is called in code and JSON.
        label: What it is called in tables and reports.
        summary: What it measures, in the help.
        group: Which group it belongs to.
        unit: A `share`, which is shown in per cent, or a `number`.
        better: Whether a `higher` or a `lower` value is better; the best is 1 or 0.
        of: Measures a release.
    """

    id: str
    label: str
    summary: str
    group: Group
    unit: Literal["share", "number"]
    better: Literal["higher", "lower"]
    of: Callable[[Assessment], Iterable[Value]]


MEASURES: dict[str, Measure] = {}


def measure(
    id: str,
    *,
    label: str,
    summary: str = "",
    group: Group,
    unit: Literal["share", "number"] = "share",
    better: Literal["higher", "lower"] = "higher",
) -> Callable[[Callable[[Assessment], Iterable[Value]]], Callable[[Assessment], Iterable[Value]]]:
    """Register a function that measures a release, so that `evaluate`, comparisons and reports have it.

    It needs a summary only if its label does not say what it measures. Where it does not apply, it yields a value of
    None with the reason, or raises a `QueryveilError`.
    """

    def register(of: Callable[[Assessment], Iterable[Value]]) -> Callable[[Assessment], Iterable[Value]]:
        if id in MEASURES:
            raise ValueError(f"two measures are called {id}")
        MEASURES[id] = Measure(id, label, summary or label, group, unit, better, of)
        return of

    return register
