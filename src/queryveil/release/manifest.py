"""The manifest of a release: everything needed to check it, and to make it again from the same log."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from queryveil import __version__
from queryveil.claims import AnyClaim, DifferentialPrivacy
from queryveil.claims.lists import StatedList
from queryveil.formats.input import Input
from queryveil.log import QueryLog, Scrub, SeriesPlace, Viewed
from queryveil.release.about import About
from queryveil.release.bands import Band
from queryveil.release.linkage import Linkage
from queryveil.text import language
from queryveil.text.languages import DEFAULT
from queryveil.text.scripts import bit

FORMAT_VERSION = 2
SOFTWARE = f"queryveil {__version__}"


class Counts(Viewed):
    """How much of everything there is."""

    model_config = ConfigDict(frozen=True)
    rows: int
    events: int
    users: int | None
    """None if no user ids are released."""
    queries: int
    clicks: int
    sessions: int | None = None
    """None if no session ids are released."""


class CountedOn(BaseModel):
    """The log on which users of fragments were counted, if it is another than the one released."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    fingerprint: str
    """A digest of it under the same key as that of the log itself."""
    counts: Counts


class Languages(BaseModel):
    """How queries were cut into words, and which of them are stop words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    ids: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] = Field(min_length=1)
    """The languages of the log, by their codes of ISO 639-1."""
    dictionaries: dict[
        Annotated[str, Field(pattern=r"^[A-Z][a-z]{1,30}$")],
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,+_-]{1,120}$")],
    ] = {}
    """The packages and versions that cut each language without blanks of which the log has words; another version may
    give other words, and another release."""


UNPUBLISHED = Counts(rows=0, events=0, users=None, queries=0, clicks=0)
"""Instead of the size of a log, if exact numbers would break a promise of differential privacy."""


LISTS = ("allow_list", "block_list", "fragment_list", "decisions")
"""Parameters that name a list which the publisher keeps."""
_FILES = (*LISTS, "key_file", "taxonomy")


def names_a_file(value: object) -> bool:
    """Whether the value is only the name of a file: without a folder, and without control characters."""
    alone = isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\\")
    return alone and str(value).isprintable() and len(str(value)) < 256


def located(parameters: dict[str, Any], lists: Mapping[str, Path]) -> dict[str, Any]:
    """The parameters of a method as a manifest has them, with the files of those lists that are at hand."""
    named = {use: parameters[use] for use in LISTS if parameters.get(use) is not None}
    return parameters | {use: lists[name] for use, name in named.items() if name in lists}


_RARE = ("input", "about", "language", "lists")
"""Fields that are not written if they are empty."""

Kind = Literal["events", "sessions", "records", "items", "tokens", "counts"]
"""What is released: events without links, sessions, records of users or of groups, nodes of a taxonomy instead of
queries, tokens instead of words, or a table of counts, or of queries without any if it is differentially private."""


PIPELINE = "pipeline"


class Stage(NamedTuple):
    """A method and its parameters, by itself or as a step of a pipeline."""

    method: str
    parameters: dict[str, Any]


def _are_steps(parameters: dict[str, Any]) -> bool:
    steps = parameters.get("steps")
    return (
        set(parameters) == {"steps"}
        and isinstance(steps, list)
        and len(steps) > 0
        and all(isinstance(step, dict) and set(step) == {"method", "parameters"} for step in steps)
        and all(isinstance(step["method"], str) and isinstance(step["parameters"], dict) for step in steps)
    )


class Manifest(BaseModel):
    """What a release is and promises."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format_version: int = FORMAT_VERSION
    software: str = SOFTWARE
    about: About | None = None
    """What the publisher says about it; not written if nothing is said."""
    method: str
    kind: Kind
    parameters: dict[str, Any]
    claims: tuple[AnyClaim, ...]
    limits: tuple[str, ...] = ()
    """What the method does not promise, in plain words."""
    language: Languages | None = None
    """The languages of the log, and with what words were cut; None, and not written, for English and languages with
    blanks that are treated like it."""
    scrub: Scrub | None = None
    """How the log was scrubbed before the method saw it, and what was found."""
    linkage: Linkage | None = None
    """What background knowledge reveals in the release, as its publisher measured it; None if nothing is linked, or
    nothing could be measured."""
    series: SeriesPlace | None = None
    """Where in its series it is; None for a release by itself."""
    input_fingerprint: str | None
    """A digest of the original log under a key that follows from the seed; None if the release is differentially
    private, because it would reveal something exact about the log."""
    input_counts: Counts
    input: Input | None = None
    """How the log is read, where its files do not say so: names of columns, an encoding, a format of times; not written
    if there is nothing to say. It decides nothing: the person who reads the log says who its users are."""
    counted_on: CountedOn | None = None
    """The log on which users of fragments were counted; None if that is the log itself."""
    lists: dict[str, StatedList] = {}
    """The lists that it was made with, by the names of their files; not written if there is none."""
    counts: Counts
    bands: tuple[Band, ...]
    columns: tuple[str, ...]
    table: str = ""
    files: dict[str, str] = {}
    """The SHA-256 of every file of the release except the manifest."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what most releases do not have: words of the publisher, another language, lists."""
        found: dict[str, Any] = dump(self)
        return {name: value for name, value in found.items() if name not in _RARE or value}

    @property
    def private(self) -> bool:
        """Whether it is differentially private, so that nothing exact about its log is published."""
        return any(isinstance(claim, DifferentialPrivacy) for claim in self.claims)

    @property
    def steps(self) -> "tuple[Stage, ...]":
        """The methods that made it, one after the other, with their parameters: one, unless it is of a pipeline."""
        if self.method != PIPELINE:
            return (Stage(self.method, self.parameters),)
        return tuple(Stage(step["method"], step["parameters"]) for step in self.parameters["steps"])

    @property
    def list_names(self) -> "set[str]":
        """The files of the lists that it was made with."""
        scrubbed = set() if self.scrub is None or self.scrub.decisions is None else {self.scrub.decisions}
        return scrubbed | {
            str(step.parameters[use]) for step in self.steps for use in LISTS if step.parameters.get(use)
        }

    @property
    def last(self) -> "Manifest":
        """The same with its last step in the place of a pipeline."""
        method, parameters = self.steps[-1]
        return self.model_copy(update={"method": method, "parameters": parameters})

    @field_validator("parameters")
    @classmethod
    def _names_no_path(cls, parameters: dict[str, Any], others: ValidationInfo) -> dict[str, Any]:
        """Refuse a path: a manifest may come from anybody, and the files it names may be opened."""
        pipeline = others.data.get("method") == PIPELINE
        if pipeline and not _are_steps(parameters):
            raise ValueError("a pipeline has steps, each with a method and its parameters")
        given = [step["parameters"] for step in parameters["steps"]] if pipeline else [parameters]
        for value in (step.get(name) for step in given for name in _FILES):
            if value is not None and not names_a_file(value):
                raise ValueError("files are named without their folders")
        return parameters


def written(manifest: Manifest) -> bytes:
    """A manifest as it is written in a release: there is only one way to write it, so that nothing can be hidden."""
    return (manifest.model_dump_json(indent=2) + "\n").encode()


def languages_of(log: QueryLog, *, private: bool) -> Languages | None:
    """What the manifest of a release says about the language of its log.

    Args:
        log: The log.
        private: Whether nothing exact about the log may be published, not even which scripts it has, as in a private
            release and in a series. Dictionaries are then those of the languages that were named.
    """
    scripts = bit(*(script for id in log.language.ids for script in language(id).scripts)) if private else log.scripts
    found = Languages(ids=log.language.ids, dictionaries=log.language.dictionaries(scripts))
    return None if found == Languages(ids=(DEFAULT,)) else found


def counts_of(log: QueryLog) -> Counts:
    """How much there is in a log."""
    return Counts(
        rows=log.stats.rows,
        events=log.stats.events,
        users=log.stats.users,
        queries=log.stats.queries,
        clicks=log.stats.clicks,
        views=log.stats.views or None,
    )


def counted_on(log: QueryLog, seed: int) -> CountedOn:
    """What a manifest says about the log on which users were counted, beside that of the release."""
    return CountedOn(fingerprint=log.counted.keyed_fingerprint(seed), counts=counts_of(log.counted))
