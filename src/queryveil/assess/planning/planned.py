"""A plan: the release that keeps most of what an aim needs and meets a policy, as a recipe with the reasons."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa

from queryveil.assess.arguments import at_least
from queryveil.assess.comparison import Configuration
from queryveil.assess.planning.search import NOTHING, Outcome, Search
from queryveil.assess.planning.space import AIMS, Aim, method_of, space
from queryveil.assess.planning.trials import Trials
from queryveil.assess.policy import Judgement, Policy, load_policy
from queryveil.errors import Progress, QueryveilError, did_you_mean, parameter
from queryveil.files.folders import check_file, write_whole
from queryveil.knowledge import open_taxonomy
from queryveil.log import QueryLog, local
from queryveil.log.sharing import sharing
from queryveil.methods import Method, Pipeline
from queryveil.text.show import percent, printable
from queryveil.text.tabular import Tabular, html_rows

SHOWN = 10
"""Most runners-up in a recipe."""
_WIDTH = 116


@dataclass(frozen=True)
class Tried:
    """A release of a plan.

    Attributes:
        name: What it is called.
        keeps: What it keeps, as the plan ranks releases; None if that was not measured.
        meets: Whether it meets the policy; None if that is unknown.
        why: Which lines of the policy it misses, or why it was not judged.
    """

    name: str
    keeps: float | None
    meets: bool | None
    why: str

    @property
    def keeps_text(self) -> str:
        """What it keeps, in words."""
        return "-" if self.keeps is None else percent(self.keeps)


@dataclass(frozen=True)
class Plan(Tabular):
    """The release that keeps most and meets a policy, and what else was tried.

    Attributes:
        keep: What the release is for.
        policy: The policy.
        configuration: The release; None if none was found.
        judgement: Every line of the policy: of the release, or of the nearest miss if none was found.
        nearest: The name of the nearest miss; None if a release was found.
        ranked_by: What releases were ranked by, in words.
        tried: All releases that keep anything, from the one that keeps most.
        left_out: What was never tried, each with the reason.
        private: Whether the release is differentially private.
        ended: Whether time was up before the search was over.
    """

    keep: Aim
    policy: Policy
    configuration: Configuration | None
    judgement: Judgement | None
    nearest: str | None
    ranked_by: str
    tried: tuple[Tried, ...]
    left_out: tuple[str, ...]
    private: bool
    ended: bool

    @property
    def method(self) -> Method:
        """The method that makes the release.

        Raises:
            QueryveilError: If nothing meets the policy.
        """
        if self.configuration is None:
            raise QueryveilError(" ".join(self.reasons))
        return method_of(self.configuration)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why this release, or why none, in a few sentences."""
        return tuple(self._why_none() if self.configuration is None else self._why(self.configuration))

    @property
    def runners_up(self) -> tuple[Tried, ...]:
        """What keeps most beside the release, and why each lost."""
        mine = None if self.configuration is None else self.configuration.name
        return tuple(one for one in self.tried if one.name != mine)

    @property
    def recipe(self) -> str:
        """The recipe, with the reasons as comments.

        Raises:
            QueryveilError: If nothing meets the policy.
        """
        method, one = self.method, self.configuration
        assert one is not None  # noqa: S101  # or there is no method
        lines_of = () if self.judgement is None else self.judgement.criteria
        others = self.runners_up
        lines = [
            *_comment(f"Plan of queryveil, to keep {self.keep}: {one.name}."),
            *_comment("It describes the log, so it is for those who may see the log."),
            "#",
            *_listed(self.reasons),
            "#",
            *_comment("Lines of the policy:"),
            *_listed(f"{line.sentence}. {line.why}" for line in lines_of if line.found is not None),
            "#",
            *_comment(f"Runners-up, {min(SHOWN, len(others))} of {len(others):,}:"),
            *_listed(f"{other.name}: {_kept(other)}{other.why}" for other in others[:SHOWN]),
            "#",
            *_comment("Never tried:"),
            *_listed(self.left_out),
            "",
        ]
        if isinstance(method, Pipeline):
            for step, given in zip(method.steps, one.parameters["steps"], strict=True):
                values = [f"{name} = {_toml(value)}" for name, value in _values(step, given["parameters"])]
                inside = ", ".join(values)
                lines += ["[[steps]]", f"method = {_toml(step.name)}", f"parameters = {{ {inside} }}", ""]
        else:
            values = [f"{name} = {_toml(value)}" for name, value in _values(method, one.parameters)]
            lines += [f"method = {_toml(method.name)}", "", "[parameters]", *values, ""]
        return "\n".join(lines)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the recipe, for those who may see the log.

        Args:
            path: The file, which ends with .toml.
            overwrite: Whether a file at this place may be replaced.

        Raises:
            QueryveilError: If nothing meets the policy, or the file cannot be written.
        """
        text = self.recipe.encode()
        write_whole(check_file(path, (".toml",), overwrite), text, overwrite=overwrite, private=True)

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        one = self.configuration
        return {
            "keep": self.keep,
            "release": None if one is None else {"name": one.name, "method": one.method, "parameters": one.parameters},
            "reasons": list(self.reasons),
            "ranked_by": self.ranked_by,
            "policy": self.policy.model_dump(),
            "judgement": None if self.judgement is None else self.judgement.as_dict(),
            "nearest": self.nearest,
            "tried": [vars(tried) for tried in self.tried],
            "left_out": list(self.left_out),
            "ended": self.ended,
        }

    def to_arrow(self) -> pa.Table:
        """One row per release."""
        return pa.Table.from_pylist([vars(one) for one in self.tried], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        rows = [(one.name, one.meets, one.keeps_text, one.why) for one in self.tried]
        title = f"Plan for {self.keep}: {'none' if self.configuration is None else self.configuration.name}"
        return html_rows(title, ("release", "meets the policy", "keeps", "why"), rows, ())

    def _why(self, one: Configuration) -> Iterator[str]:
        if self.private:
            yield (
                "It is the first in a fixed order (publish-counts, dp-set, zealous) that meets the policy. Epsilon and"
                " delta are max_epsilon and max_delta of the policy, all other parameters have their defaults, and no"
                " parameter was chosen by looking at the log."
            )
            yield (
                "Whether a release meets the policy was found out by attacks on this log, so the choice between these"
                " methods is not differentially private. If that matters, choose the method yourself."
            )
            yield "Every run draws new noise, so the release that you make is not the one that was attacked."
        else:
            kept = next(tried for tried in self.tried if tried.name == one.name)
            yield f"Of the releases that meet the policy, it keeps the most {self.ranked_by}: {kept.keeps_text}."
            yield (
                "Of equals, the one with the least linkage counts. It is taken for granted that if a k meets a limit on"
                " linkage, attribution or exposed queries, a larger k does, and that a larger k keeps no more."
            )
        judged = sum(tried.meets is not None for tried in self.tried)
        yield (
            f"{judged:,} releases were judged or ruled out. Attacks are estimates, and of many releases one may pass by"
            " chance: before you publish, have it judged again by the same policy, and attacked with other seeds."
        )
        if self.ended:
            yield f"Time was up before the search was over: {self._unjudged()}"

    def _why_none(self) -> Iterator[str]:
        if self.ended:
            yield f"Time was up before a release was found that meets the policy: {self._unjudged()}"
        elif self.nearest is None:
            yield "No release keeps anything of it."
        else:
            yield "No release that keeps anything of it meets the policy."
        if self.nearest is not None and self.judgement is not None:
            missed = "; ".join(one.sentence for one in self.judgement.unmet)
            yield f"The nearest is {self.nearest}: {missed}."

    def _unjudged(self) -> str:
        count = sum(one.meets is None for one in self.tried)
        return f"{count:,} releases were not judged, and one of them may keep more."


_SCHEMA = pa.schema([("name", pa.string()), ("keeps", pa.float64()), ("meets", pa.bool_()), ("why", pa.string())])


def _kept(one: Tried) -> str:
    return "" if one.keeps is None else f"keeps {one.keeps_text}; "


def _comment(text: str, first: str = "# ") -> list[str]:
    """Text as lines of comments; nothing in it can end a comment."""
    return wrap(printable(text.rstrip()), _WIDTH, initial_indent=first, subsequent_indent="#" + " " * (len(first) - 1))


def _listed(items: Iterable[str]) -> list[str]:
    return [line for item in items for line in _comment(item, "# - ")]


def _values(step: Method, given: dict[str, Any]) -> list[tuple[str, Any]]:
    """The parameters of a step, all that have a value, so that other defaults change nothing."""
    known = step.parameters()
    if "taxonomy" in known:
        known["taxonomy"] = given["taxonomy"]  # its place, of which the method knows only the name
    return [(name, value) for name, value in known.items() if value is not None]


def _toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = (rf"\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 or c in '"\\' else c for c in value)
        return f'"{"".join(escaped)}"'
    return repr(value)


def plan(
    log: QueryLog,
    keep: Aim,
    *,
    policy: Policy | None = None,
    taxonomy: str = "wordnet",
    web_directory: str | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    budget_minutes: float | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Find the method and the parameters of the release that keeps most of what an aim needs and meets a policy.

    Args:
        log: The log.
        keep: The aim: `long-tail`, `sessions`, `profiles` or `statistics`.
        policy: What the release must meet; by default the policy that comes with queryveil.
        taxonomy: Where methods and measures look queries up.
        web_directory: Where `search` looks sites up; without it, `search` is not tried.
        seed: Random seed, for everything but the noise of differential privacy.
        folder: Where to store what is found, so that another call continues where the last one ended. It describes the
            log, and is for those who may see that. By default nothing is stored.
        budget_minutes: After how many minutes the best of what was found counts; by default the search ends by itself.
        progress: Called with what is being done, and what is left.
    """
    here = local(log, "plan")
    if keep not in AIMS:
        raise QueryveilError(f"There is no aim '{keep}'; {did_you_mean(keep, AIMS)}.")
    if budget_minutes is not None and not budget_minutes > 0:
        raise QueryveilError(
            f"{parameter('plan', 'budget_minutes')} must be a number above 0. Got {budget_minutes!r} instead."
        )
    at_least(0, "plan", "seed", seed)
    rules, base = policy or load_policy(), open_taxonomy(taxonomy)
    if web_directory is not None:
        open_taxonomy(web_directory)
    found = space(keep, rules, here, taxonomy=taxonomy, web_directory=web_directory)
    trials = Trials(here, rules, base, [taxonomy, web_directory], seed, _prepared(folder))
    with sharing(here):
        search = Search(
            here, keep, found.families, trials, None if budget_minutes is None else 60 * budget_minutes, progress
        )
        outcome = search.run()
        nearest = search.nearest(outcome.scores) if not outcome.best else None
    best = max(outcome.best, key=lambda one: -_linkage(trials.known(one)), default=None)
    judgement = nearest[1] if nearest is not None else None if best is None else trials.known(best)
    return Plan(
        keep,
        rules,
        best,
        judgement,
        None if nearest is None else nearest[0].name,
        outcome.ranked_by,
        tuple(_tried(one, outcome, trials) for one in search.ordered(outcome.scores)),
        found.left_out,
        keep == "statistics",
        outcome.ended,
    )


def _prepared(folder: str | Path | None) -> Path | None:
    """The folder for what is found, which only its owner may see."""
    if folder is None:
        return None
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise QueryveilError(f"{place} is a file; name a folder for what is found.")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def _linkage(judged: Judgement | None) -> float:
    """What comparisons call the risk of a release."""
    lines = () if judged is None else judged.criteria
    return max((one.found for one in lines if one.id == "linkage" and one.found is not None), default=0.0)


def _tried(one: Configuration, outcome: Outcome, trials: Trials) -> Tried:
    """What became of a release."""
    keeps = None if outcome.by_order else outcome.scores.get(one.name)
    judged, trial = trials.known(one), trials.trial(one)
    if trial.status != "done":
        return Tried(one.name, keeps, False, trial.why)
    if judged is not None and judged.missed:
        return Tried(one.name, keeps, False, "; ".join(line.sentence for line in judged.missed))
    if one.name in outcome.dropped:
        line, other = outcome.dropped[one.name]
        return Tried(one.name, keeps, False, f"{other} misses '{line}' already")
    if judged is not None and judged.meets:
        return Tried(one.name, keeps, True, "it meets the policy")
    if one in outcome.unsure and judged is not None:
        return Tried(one.name, keeps, None, "; ".join(line.sentence for line in judged.open))
    if keeps == NOTHING:
        return Tried(one.name, keeps, None, "not judged: it keeps nothing")
    if outcome.by_order:
        return Tried(one.name, keeps, None, "not judged: an earlier one meets the policy")
    why = "time was up" if outcome.ended else "a release that keeps more meets the policy"
    return Tried(one.name, keeps, None, f"not judged: {why}")
