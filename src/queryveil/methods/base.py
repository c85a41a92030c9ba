"""What all methods have in common: frozen parameters, and one operation from a log to a release."""

import secrets
import types
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import pyarrow as pa
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from queryveil.claims.base import MOST, Claim
from queryveil.claims.limits import LIMITS
from queryveil.errors import NothingToReleaseError, QueryveilError, did_you_mean, not_both, option, parameter, renamed
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog, check_is_log, local
from queryveil.release import Release
from queryveil.release.making import ReleaseMetadata
from queryveil.release.manifest import PIPELINE, names_a_file


@dataclass(frozen=True)
class Reason:
    """One rule that a query passed or failed, which decided whether it is released."""

    rule: str
    passed: bool | None
    """None if it decides nothing and only helps to understand the other reasons."""
    found: str
    step: str | None = None
    """The step of a pipeline that has the rule."""


def enough_users(log: LocalLog, query_id: int, least: int) -> Reason:
    """Whether enough users issued a query."""
    users = int(log.users_per_query[query_id])
    return Reason(f"at least {least} users issued the query", users >= least, f"{users} did")


def plain_name(path: Path | None) -> Path | None:
    """The file of a list, whose name can stand in a manifest."""
    if path is not None and not names_a_file(path.name):
        raise ValueError("the manifest names the file, so its name cannot have a backslash or a control character")
    return path


RENAMED = {"d": "max_queries_per_user", "knowledge": "taxonomy"}
"""Parameters by their names in version 0.1, which this version accepts with a warning."""


DELTA = 1e-6
"""The delta that comparisons try."""


class Method(BaseModel):
    """A way to anonymize a log.

    A method declares its parameters once, as fields with bounds and a description; the command line, recipes, the
    manifest and the docs read them from there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: ClassVar[str]
    """What the method is called on the command line."""
    summary: ClassVar[str]
    """What it does, in at most twelve words; shown beside its name."""
    plain: ClassVar[str]
    """What it publishes, for a reader who knows none of its papers; `{k}` stands for its k."""
    makes: ClassVar[Literal["events", "records", "items", "tokens", "counts"]]
    """What it makes of events; only a step that makes events can have another one after it."""
    alone: ClassVar[bool] = True
    """Whether it protects anybody by itself; if not, it is only a step of a pipeline."""
    hides_clicks: ClassVar[bool] = False
    """Whether what it promises is lost if clicks are published."""
    slow: ClassVar[bool] = False
    """Whether it takes longer than most, so that a comparison begins with it."""
    extras: ClassVar[tuple[str, ...]] = ()
    """The extras of queryveil that it needs."""
    derived: ClassVar[frozenset[str]] = frozenset()
    """Parameters that are computed from others if they are not given, so they cannot be switched off."""
    fits_aol: ClassVar[bool] = True
    """Whether its table has the columns of AOL's format."""

    @property
    def private(self) -> bool:
        """Whether its release is differentially private."""
        return False

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """When a second run releases the same.

        Always, except for pseudonyms and order; only with the same seed; or never, because it draws noise or keys.
        """
        return "always"

    def __init__(self, **parameters: Any) -> None:
        for old in RENAMED.keys() & parameters.keys() - type(self).model_fields.keys():
            if RENAMED[old] in parameters:
                raise not_both(old, RENAMED[old])
            renamed(_named(type(self), old), option(RENAMED[old]))
            parameters[RENAMED[old]] = parameters.pop(old)
        try:
            super().__init__(**parameters)
        except ValidationError as error:
            raise QueryveilError(_sentence(type(self), error)) from None

    @model_validator(mode="after")
    def _countable(self) -> Self:
        large = next((name for name, value in self if isinstance(value, int) and value > MOST), None)
        if large is not None:
            raise ValueError(f"{_named(type(self), large)} is larger than any log; lower it.")
        return self

    def anonymize(self, log: QueryLog, *, seed: int | None = None, counted_on: QueryLog | None = None) -> Release:
        """Make a release of a log.

        Args:
            log: The original log.
            seed: Random seed: the same log, parameters and seed give the same bytes. By default 128 random bits. Keep
                it secret: with the seed and most of the log, anybody can check a guess about the rest of it.
            counted_on: Another log on which rules count the users of fragments, such as 13 months for a release of a
                day; by default the log itself.
        """
        check_is_log(log, "anonymize")
        log = log if counted_on is None else log.counted_on(counted_on)
        if log.counted is not log and not any(getattr(part, "min_fragment_users", None) for part in self.parts):
            raise QueryveilError(
                f"Only the rule {option('min_fragment_users')} counts on another log, and {self.name} does not have it;"
                f" set it, or leave {option('counted_on')} out."
            )
        if seed is not None and seed < 0:
            raise QueryveilError(f"The seed must be a whole number of at least 0. Got {seed} instead.")
        for part in self.parts:
            if part.one_machine is not None:
                local(log, part.one_machine)
        release = self._anonymize(log, seed=secrets.randbits(128) if seed is None else seed)
        return replace(release, notes=(*release.notes, *self._left_out(log, release.schema.names)))

    @property
    def one_machine(self) -> str | None:
        """What of it runs on one machine only, as a sentence about it begins; a cluster is refused before any work."""
        return None

    @property
    def lists(self) -> dict[str, Path]:
        """The files of the lists that it uses, by parameter."""
        return {}

    @property
    def parts(self) -> tuple["Method", ...]:
        """The steps of a pipeline; of any other method the method itself."""
        return (self,)

    @property
    def last(self) -> "Method":
        """The step that makes the released table: of a pipeline its last one, else the method itself."""
        return self.parts[-1]

    def _left_out(self, log: QueryLog, columns: Sequence[str]) -> list[str]:
        """A note about the columns of the log that the release does not have, and how to keep them."""
        if self.last.makes == "counts":
            return []
        own = "time" in type(self.last).model_fields  # it has the parameters that keep columns
        extras = sum(name not in columns for name in log.stats.extras)
        lost: dict[str, str] = {}
        if log.has_results and "url" not in columns and not any(part.hides_clicks for part in self.parts):
            lost["views and clicks" if log.has_views else "clicks"] = (
                "min_row_users" if own and self.last.alone else "min_click_users"
            )
        if log.has_times and "time" not in columns:
            lost["times"] = "time"
        if extras:  # not by name, which may be data in a file without a header
            merged = getattr(self.last, "min_metadata_users", None) is not None
            lost[f"{extras} extra column{'s' if extras > 1 else ''}"] = "metadata" if merged else "min_metadata_users"
        if not lost:
            return []
        named, how = _listed(list(lost)), _listed([option(name) for name in lost.values()])
        if own:
            return [f"Left out: {named}; {self.last.name} can keep them with {how}."]
        if self.last.makes != "events":
            return [f"Left out: {named}; no step keeps them beside {self.last.makes}."]
        link = getattr(self.last, "link", "none")
        linked = "" if link == "none" else f", and must then have {option('link', link)} itself"
        return [f"Left out: {named}; a last step columns can keep them with {how}{linked}."]

    @abstractmethod
    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Make a release of a log with a seed."""

    def describe(
        self,
        claims: Sequence[Claim],
        seed: int,
        notes: Sequence[str] = (),
        certified: Mapping[str, pa.Table] | None = None,
    ) -> ReleaseMetadata:
        """What it says about a release that it makes.

        Args:
            claims: What the release promises.
            seed: Random seed.
            notes: Sentences about what the method did.
            certified: The tables of the certificate.
        """
        return {
            "method": self.name,
            "parameters": self.parameters(),
            "claims": claims,
            "limits": LIMITS.get(self.name, ()),
            "seed": seed,
            "notes": notes,
            "certified": certified or {},
            "lists": self._named_lists,
        }

    @property
    def _named_lists(self) -> dict[str, Path]:
        """The files of all lists by their names, by which a release knows them."""
        found: dict[str, Path] = {}
        for path in (path for part in self.parts for path in part.lists.values()):
            if found.setdefault(path.name, path) != path:
                raise QueryveilError(
                    f"Two lists are called {path.name}, and a release knows a list by its name; rename one of them."
                )
        return found

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """What a comparison tries: a label and parameters for each value of its k, or of its epsilon."""
        if "k" in cls.model_fields:
            return [(f"k = {k}", {"k": k}) for k in ks]
        if "epsilon" in cls.model_fields:
            return [(f"ε = {epsilon:g}", {"epsilon": epsilon, "delta": DELTA}) for epsilon in epsilons]
        return [("", {})]

    @abstractmethod
    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Why a query of the log is released or not: every rule, with what was found.

        Args:
            log: The log.
            query_id: The query.
            within: Which queries earlier steps of a pipeline left; by default all.
        """

    def warnings(self, log: QueryLog) -> list[str]:
        """What the publisher should know before a release is made from a log; not published."""
        return []

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in the manifest and in a recipe."""
        found = self.model_dump(mode="json")
        return {parameter.name: found[parameter.name] for parameter in parameters_of(type(self))}


def check_k(method: Method, users: int, who: str = "users", *, name: str = "k") -> None:
    """Refuse a parameter that asks for more users than there are.

    Args:
        method: The method.
        users: How many users there are.
        who: What to call them, such as `users with a noun`.
        name: The parameter; nothing is refused if it is off.
    """
    least = getattr(method, name)
    if least is not None and users < least:
        raise NothingToReleaseError(
            f"{_named(type(method), name)} is {least}, but the log has only {users} {who}, so nothing could be"
            " released."
        )


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method, as the command line and the docs need it."""

    name: str
    kind: type
    """int, float, bool, str or Path."""
    many: bool
    choices: tuple[str, ...]
    default: Any
    bounds: str
    """Such as `of at least 2` or `in (0, 1]`; empty if any value is allowed."""
    help: str
    optional: bool
    """Whether it can be switched off (None)."""

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        noun = {int: "an integer", float: "a number", bool: "true or false", str: "a text", Path: "a path"}[self.kind]
        noun = f"a list, each item {noun}" if self.many else noun
        return f"{noun} {self.bounds}".strip()


def parameters_of(method: type[Method]) -> list[Parameter]:
    """The declared parameters of a method; those it shares with other methods come last. A pipeline has only steps."""
    if method.name == PIPELINE:
        return []
    shared = {name for parent in method.__mro__[1:] for name in getattr(parent, "model_fields", {})}
    fields = sorted(method.model_fields.items(), key=lambda field: field[0] in shared)
    found = [_parameter(name, info) for name, info in fields]
    return [replace(one, optional=one.optional and one.name not in method.derived) for one in found]


def _parameter(name: str, info: FieldInfo) -> Parameter:
    metadata = list(info.metadata)
    kind, many, choices = info.annotation, False, ()
    optional = type(None) in get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        metadata += [item for part in more for item in (part.metadata if isinstance(part, FieldInfo) else [part])]
    if get_origin(kind) is tuple:
        kind, many = get_args(kind)[0], True
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    assert isinstance(kind, type)  # noqa: S101
    default = info.get_default(call_default_factory=True)
    return Parameter(name, kind, many, tuple(choices), default, _bounds(metadata), info.description or "", optional)


def _bounds(metadata: list[Any]) -> str:
    least = next((m for m in metadata if isinstance(m, Ge | Gt)), None)
    most = next((m for m in metadata if isinstance(m, Le | Lt)), None)
    if least is not None and most is not None:
        left = f"[{least.ge}" if isinstance(least, Ge) else f"({least.gt}"
        right = f"{most.le}]" if isinstance(most, Le) else f"{most.lt})"
        return f"in {left}, {right}"
    if least is not None:
        return f"of at least {least.ge}" if isinstance(least, Ge) else f"above {least.gt}"
    if most is not None:
        return f"of at most {most.le}" if isinstance(most, Le) else f"below {most.lt}"
    return ""


def _sentence(method: type[Method], error: ValidationError) -> str:
    problem = error.errors()[0]
    known = {parameter.name: parameter for parameter in parameters_of(method)}
    name = str(problem["loc"][0]) if problem["loc"] else None
    if name is None or (name in method.model_fields and name not in known):  # of all parameters, or of a step
        return str(problem["msg"]).removeprefix("Value error, ")
    if name not in known:
        return f"{method.__name__} has no parameter '{name}'; {did_you_mean(name, known)}."
    if problem["type"] == "value_error":
        return f"{_named(method, name)}: {str(problem['msg']).removeprefix('Value error, ')}"
    got = problem["input"]
    return f"{_named(method, name)} must be {known[name].expected}. Got {got!r} instead."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _named(method: type[Method], name: str) -> str:
    return parameter(method.__name__, name)
