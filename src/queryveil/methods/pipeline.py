"""Pipelines: methods one after the other, in one release that keeps the promises of all of them.

The papers protect either the query or the user. A pipeline does both: first steps choose queries that are protected,
and the last one decides how they are published, for example in records that several users share. Every step counts
users in the whole log, and every promise is about the published table, so a later step cannot break it unnoticed: what
it weakens is promised in its weaker form or not at all.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from queryveil.claims import AffineUsers, AllUsers, Claim, RecordQueries
from queryveil.claims.certificates import Certificate
from queryveil.claims.limits import limits_of
from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, did_you_mean, option, parameter
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sharing import sharing
from queryveil.methods.base import DELTA, Method, Reason
from queryveil.methods.columns import Columns
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.poblete import Poblete
from queryveil.methods.queries import QueryMethod, Selection, Speaker, flags_of
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.methods.rules import Rules
from queryveil.methods.scrub import Scrub
from queryveil.release import Release
from queryveil.release.bands import bands
from queryveil.release.making import ReleaseMetadata, stated_lists
from queryveil.release.manifest import counts_of


def _as_method(given: object) -> object:
    """A step as a recipe or a manifest has it: a method and its parameters."""
    from queryveil.methods import STEPS

    if isinstance(given, Method):
        return given
    step = given if isinstance(given, dict) else {}
    name, parameters = step.get("method"), step.get("parameters", {})
    if set(step) - {"method", "parameters"} or not isinstance(name, str) or not isinstance(parameters, dict):
        raise ValueError("A step is a method, or a table that names one with a table of its parameters.")
    if name not in STEPS:
        raise ValueError(f"There is no step '{name}'; {did_you_mean(name, STEPS)}.")
    try:
        return STEPS[name](**parameters)
    except QueryveilError as error:
        raise ValueError(str(error)) from None


Step = Annotated[SerializeAsAny[Method], BeforeValidator(_as_method)]


class Pipeline(Method):
    """Run methods one after the other: first steps choose queries, the last one publishes them.

    A step is a method with its parameters. `Scrub` comes first, if at all; `Columns` comes last, if at all; and before
    a last step that makes something else of events, such as records, any number of steps choose queries.

    Example:
        >>> import queryveil as qv
        >>> pipeline = qv.Pipeline([qv.Scrub(), qv.Affinity(k=5), qv.Odp(k=5)])
        >>> [step.name for step in pipeline.steps]
        ['scrub', 'affinity', 'odp']
    """

    name: ClassVar[str] = "pipeline"
    plain: ClassVar[str] = "It was made in several steps."
    summary: ClassVar[str] = "several methods one after the other, which keep the promises of all"
    makes = "events"

    steps: tuple[Step, ...] = Field((), description="the methods, in order")

    def __init__(self, steps: Sequence[Method | dict[str, Any]] = (), **parameters: Any) -> None:
        if not isinstance(steps, Iterable) or isinstance(steps, str | bytes | Mapping):
            named = parameter("Pipeline", "steps")
            raise QueryveilError(f"{named} must be a list of methods with their parameters.")
        super().__init__(steps=tuple(steps), **parameters)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        wrong = _senseless(self.steps)
        if wrong is not None:
            raise ValueError(wrong)
        return self

    @property
    def parts(self) -> tuple[Method, ...]:
        """The steps."""
        return self.steps

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """As its last step, unless an earlier one draws something."""
        drawn = any(step.repeats == "seed" for step in self.selecting)
        return "seed" if drawn and self.last.repeats == "always" else self.last.repeats

    @property
    def scrub(self) -> Scrub | None:
        """The step that scrubs, if there is one."""
        return self.steps[0] if isinstance(self.steps[0], Scrub) else None

    @cached_property
    def selecting(self) -> tuple[QueryMethod, ...]:
        """The steps before the last that choose queries."""
        return tuple(step for step in self.steps[:-1] if isinstance(step, QueryMethod))

    def parameters(self) -> dict[str, Any]:
        """The steps as they are written in the manifest and in a recipe."""
        return {"steps": [{"method": step.name, "parameters": step.parameters()} for step in self.steps]}

    def describe(self, *given: Any, **named: Any) -> ReleaseMetadata:
        """What it says about a release that it makes: the limits are those of its steps."""
        described = super().describe(*given, **named)
        drawn = any(_drawn(claim) for claim in described["claims"])
        described["limits"] = limits_of([step.name for step in self.steps], drawn=drawn)
        return described

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """The pipelines that come with queryveil, for each k, or for each epsilon if they are private."""
        found = []
        for name, recipe in ((name, load_recipe(name)) for name in shipped()):
            if recipe.method != cls.name:
                continue
            given = recipe.parameters["steps"]
            values: list[tuple[str, dict[str, Any]]] = [(f"k = {k}", {"k": k}) for k in ks]
            if cls(given).last.private:
                values = [(f"ε = {epsilon:g}", {"epsilon": epsilon, "delta": DELTA}) for epsilon in epsilons]
            for label, value in values:
                found.append((f"{name}, {label}", {"steps": [with_parameters(step, value) for step in given]}))
        return found

    def warnings(self, log: QueryLog) -> list[str]:
        """Those of all steps."""
        return [warning for step in self.steps for warning in step.warnings(log)]

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Run the steps: those that choose queries on the whole log, and the last on what they chose."""
        base = log if self.scrub is None else self.scrub.scrubbed(log)
        with sharing(base), base.workspace() as work:
            chosen = self._select(base, work, seed)
            speaker = Speaker(self, self._promised(base))
            if isinstance(self.last, QueryMethod):
                final = self.last.choose(base, work, seed, chosen.queries if self.selecting else None)
                notes, certified = [*chosen.notes, *final.notes], {**chosen.certified, **final.certified}
                return self.last.publish(base, work, Selection(final.queries, notes, certified), speaker, seed=seed)
            if not self.selecting:
                return self._renamed(self.last._anonymize(base, seed=seed), base, (), seed)
            part = base.only(chosen.queries, json.dumps(self.parameters(), sort_keys=True))
            made = self.last._anonymize(part, seed=seed)
            return self._of_whole(self._renamed(made, base, speaker.claims, seed), base, part, chosen)

    def _select(self, log: QueryLog, work: Workspace, seed: int) -> Selection:
        """What the steps before the last chose, with notes that name the step."""
        chosen: Table | None = None
        notes: list[str] = []
        certified: dict[str, pa.Table] = {}
        for place, step in enumerate(self.selecting):
            found = step.choose(log, work, seed, chosen)
            chosen = found.queries
            (n,) = work.row(f"SELECT count(*) AS n FROM {chosen}")
            notes += [f"After {step.name}: {n:,} of {log.n_queries:,} distinct queries.", *found.notes]
            certified |= found.certified
            if isinstance(log, LocalLog) and any(_drawn(claim) for claim in self._claims_of(place, log)):
                ids = work.fetch(f"SELECT query_id FROM {chosen} ORDER BY query_id")
                certified["protected"] = ids.cast(pa.schema([("query_id", pa.int64())]))
        return Selection(chosen if chosen is not None else work.table("SELECT query_id FROM queries"), notes, certified)

    def _promised(self, log: QueryLog) -> list[Claim]:
        """What the steps before the last promise about queries of the published table."""
        found = [claim for place in range(len(self.selecting)) for claim in self._claims_of(place, log)]
        return list(dict.fromkeys(found))

    def _claims_of(self, place: int, log: QueryLog) -> list[Claim]:
        """What a step before the last promises, as far as later steps leave it."""
        later = (*self.selecting[place + 1 :], self.last)
        drawn = any(drops_queries(step) for step in later)
        return [
            claim.model_copy(update={"drawn": True}) if drawn and isinstance(claim, AffineUsers) else claim
            for claim in self.selecting[place].claims(log)
        ]

    def _renamed(self, made: Release, log: QueryLog, promised: Sequence[Claim], seed: int) -> Release:
        """A release of the last step as one of the pipeline, with what earlier steps promise."""
        first, *rest = made.manifest.claims
        claims = (first, *promised, *filter(None, (_of_part(claim) if self.selecting else claim for claim in rest)))
        described = self.describe(claims, seed)
        update = {name: described[name] for name in ("method", "parameters", "claims", "limits")}
        update |= {"limits": tuple(described["limits"]), "parameters": dict(described["parameters"])}
        lists = described["lists"]
        update["lists"] = stated_lists(log, lists, seed)
        return replace(made, manifest=made.manifest.model_copy(update=update), lists=lists)

    def _of_whole(self, made: Release, log: QueryLog, part: QueryLog, chosen: Selection) -> Release:
        """A release of part of a log as one of the whole: its counts, its users."""
        kept = {band.least: band for band in made.manifest.bands}
        found = tuple(
            band.model_copy(
                update={
                    "kept_queries": kept[band.least].kept_queries if band.least in kept else 0,
                    "kept_events": kept[band.least].kept_events if band.least in kept else 0,
                }
            )
            for band in bands(log.frequencies())
        )
        if sum(band.kept_queries for band in found) != made.manifest.counts.queries:
            raise AssertionError("a query is released that no step chose")
        manifest = made.manifest.model_copy(update={"input_counts": counts_of(log), "bands": found})
        work = log.workspace()
        work.keeps = (part, made.workspace)
        pseudonyms = None if made.pseudonyms is None else part.in_whole(made.pseudonyms, work)
        certificate = made.certificate
        if certificate is not None:
            certificate = Certificate(certificate.seed, {**chosen.certified, **certificate.tables})
        return replace(
            made,
            manifest=manifest,
            log=log,
            pseudonyms=pseudonyms,
            certificate=certificate,
            workspace=work,
            notes=(*chosen.notes, *made.notes),
        )

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """The reasons of each step, up to the one that dropped the query; the log is scrubbed if a step scrubs."""
        reasons: list[Reason] = []
        with ExitStack() as stack:
            work = stack.enter_context(log.workspace())
            stack.enter_context(sharing(log))
            chosen: Table | None = None
            for step in (*self.selecting, self.last):
                found = step.explain(log, query_id, flags_of(log, chosen))
                reasons += [replace(reason, step=step.name) for reason in found]
                if step is self.last or not isinstance(step, QueryMethod):
                    break
                chosen = step.select(log, work, chosen).queries
                flags = flags_of(log, chosen)
                if flags is not None and not flags[query_id]:
                    break
        return reasons


def with_parameters(step: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A step of a recipe with other values for those of its parameters that are named.

    A k is a number of users: `poblete`, whose k counts addresses, stays as it is, and thresholds of `columns` that are
    lower are raised to it.
    """
    from queryveil.methods import STEPS

    given, fields = step["parameters"], STEPS[step["method"]].model_fields if step["method"] in STEPS else {}
    mine = {name: value for name, value in values.items() if name in fields}
    if "k" in values and step["method"] == Columns.name:
        least = {name: given.get(name) for name in ("min_click_users", "min_row_users", "min_metadata_users")}
        mine |= {name: max(now, values["k"]) for name, now in least.items() if isinstance(now, int)}
    if step["method"] == Poblete.name:
        mine.pop("k", None)
    return step | {"parameters": given | mine}


def _drawn(claim: Claim) -> bool:
    return isinstance(claim, AffineUsers) and claim.drawn


def drops_queries(step: Method) -> bool:
    """Whether a step may leave out a query that earlier steps chose."""
    return not isinstance(step, Columns) or step.min_row_users is not None


def _of_part(claim: Claim) -> Claim | None:
    """What a step promises of a whole log, where it saw only part of it; None if nothing is left of that."""
    if isinstance(claim, AllUsers):
        return None
    return claim.model_copy(update={"part": True}) if isinstance(claim, RecordQueries) else claim


_WHY = {
    "items": "it publishes terms of a taxonomy instead of queries, so nothing is left of what {before} promises about"
    " queries",
    "tokens": "it publishes tokens instead of words, so nothing is left of what {before} promises about queries",
    "counts": "it counts everything that users did, of which {before} would leave only a part",
}
_PRIVATE = "it is differentially private only if nothing before it chooses by what users did, as {before} does"


def _senseless(steps: Sequence[Method]) -> str | None:
    """Why steps cannot follow each other in this order; None if they can."""
    if len(steps) < 2:
        return "A pipeline has at least two steps; for one alone, use the method itself."
    if isinstance(steps[-1], Scrub):
        return "Scrub promises nothing, so it cannot be the last step; add one that protects queries or users."
    for place, step in enumerate(steps):
        if isinstance(step, Pipeline):
            return "A pipeline cannot be a step of another; list all steps in one."
        if isinstance(step, Scrub) and place > 0:
            return "Scrub must be the first step, because it changes the queries that all others count."
    methods = [step for step in steps if not isinstance(step, Scrub)]
    if isinstance(methods[0], Columns):
        return "Columns drops no query, so it needs a step before it that protects queries, such as affinity."
    for step, after in itertools.pairwise(methods):
        wrong = _cannot_follow(step, after)
        if wrong is not None:
            return wrong
    if isinstance(steps[0], Scrub) and steps[0].rare_term_users is not None and steps[-1].private:
        return (
            f"{steps[-1].name} is differentially private only if nothing before it chooses by what users did, as scrub"
            f" does with {option('rare_term_users')}; leave that out."
        )
    if isinstance(steps[0], Scrub) and steps[0].decisions is not None and steps[-1].private:
        return (
            f"{steps[-1].name} is differentially private only if nothing before it depends on what users did, as"
            f" decisions do; leave {option('decisions')} out."
        )
    decided = any(isinstance(step, Rules) and step.decisions is not None for step in methods)
    if decided and isinstance(steps[0], Scrub) and steps[0].how == "mask" and steps[0].decisions is None:
        return (
            "After masking, rules do not recognize the queries that were blocked; give scrub the decisions as well,"
            f" with {option('decisions')}."
        )
    hides = next((step for step in methods[:-1] if step.hides_clicks), None)
    shows = isinstance(steps[-1], Columns | Rules) and steps[-1].beside.click_users is not None
    clicks = shows or (isinstance(steps[-1], QueryMethod) and steps[-1].click_users is not None)
    if hides is not None and clicks:
        last = steps[-1].name
        return f"{last} publishes clicks, and what {hides.name} promises is lost with them; put {hides.name} last."
    return None


def _cannot_follow(step: Method, after: Method) -> str | None:
    """Why a step cannot come after another."""
    if not isinstance(step, QueryMethod):
        return f"{after.name} cannot follow {step.name}, which makes {step.makes}: every step needs events."
    if isinstance(step, Columns) or (isinstance(step, Rules) and step.beside.publishes):
        return (
            f"{step.name} decides what is published beside queries, so no step can follow it; put it last, or leave"
            " rules about rows, times and metadata to a last step columns."
        )
    if isinstance(step, LinkedMethod) and step.link != "none":
        return f"Only the last step can link events, and {step.name} is not the last; link by the last step."
    why = _PRIVATE if after.private else _WHY.get(after.makes)
    return None if why is None else f"{after.name} cannot follow {step.name}: {why.format(before=step.name)}."
