"""What a comparison found: releases, numbers, frontiers, and which releases meet the policy."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pyarrow as pa

from queryveil.assess.attacks import ATTACKS
from queryveil.assess.charts import comparison_chart
from queryveil.assess.evaluation import label_of
from queryveil.assess.measures import MEASURES
from queryveil.assess.policy import Evidence, Judgement, Policy, judge
from queryveil.errors import QueryveilError, did_you_mean
from queryveil.release.bands import Band
from queryveil.release.manifest import PIPELINE, Counts
from queryveil.text.show import percent
from queryveil.text.tabular import Tabular, html_rows

TAIL = ("1 user", "2-4 users")

Status = Literal["done", "empty", "failed"]


@dataclass(frozen=True)
class Configuration:
    """One configuration of the comparison: a method with its parameters, and the release that it made.

    Attributes:
        name: What it is called, such as `affinity, k = 5`.
        method: The method.
        k: The k, where it has one.
        parameters: What differs from the method's defaults.
        status: What became of it.
        why: Why nothing was released.
        promises: What the release promises.
        holds: Whether the verifier found everything to hold.
        linked: Whether released events are tied together, by a pseudonym or in a record.
        known: What a policy asks for; None if nothing was released.
    """

    name: str
    method: str
    k: int | None
    parameters: dict[str, Any]
    status: Status = "done"
    why: str = ""
    promises: tuple[str, ...] = ()
    holds: bool = False
    linked: bool = False
    known: Evidence | None = None

    @property
    def family(self) -> str:
        """What it has in common with the others of its line in a chart: the method, or the recipe of a pipeline."""
        return self.name.partition(", ")[0] if self.method == PIPELINE else self.method

    def setting(self, name: str) -> Any:
        """A parameter of the method, or of the last step that has it; None if there is none."""
        steps = [step["parameters"] for step in self.parameters.get("steps", ())]
        return next((given[name] for given in (self.parameters, *reversed(steps)) if name in given), None)


@dataclass(frozen=True)
class Row:
    """One number of one configuration.

    Attributes:
        configuration: The name of the configuration.
        kind: Whether it is about what is kept, or about what is given away.
        group: Such as `retention`, or `singling out`.
        measure: The id of the measure, or of the attack.
        setting: Which of several numbers of a measure it is, or what the attacker knows.
        value: What was found; None where the measure does not apply.
        low: The lower end of its interval.
        high: The upper end.
        best: Of what is kept: what the log itself has.
        baseline: Of an attack: its baseline.
        control: Of an attack: what its control finds.
        unit: What kind of number it is.
        succeeds: Of an attack: whether it is above baseline and control by more than chance.
        why: Why it does not apply, or what is to be known of it.
        separates: Of what is kept: whether releases can be ranked by it.
    """

    configuration: str
    kind: Literal["utility", "risk"]
    group: str
    measure: str
    setting: str
    value: float | None
    low: float | None = None
    high: float | None = None
    best: float | None = None
    baseline: float | None = None
    control: float | None = None
    unit: str = "share"
    succeeds: bool | None = None
    why: str = ""
    separates: bool = True

    @property
    def label(self) -> str:
        """What the measure or the attack is called in tables and reports."""
        return ATTACKS[self.measure].label if self.kind == "risk" else label_of(self.measure, self.setting)


@dataclass(frozen=True)
class Frontier:
    """The releases of linked events that no other exceeds in both what is kept and how little is linked.

    Attributes:
        utility: What is kept, in words.
        points: The utility and the risk of every release of linked events that has both.
        configurations: Those on the frontier, from the least risk to the most.
        apart: The utility of every release without linked events. They have no records to link, so that their risk is
            not comparable, and they are neither points nor on the frontier.
    """

    utility: str
    points: dict[str, tuple[float, float]]
    configurations: tuple[str, ...]
    apart: dict[str, float]


@dataclass(frozen=True)
class Comparison(Tabular):
    """What every method keeps and gives away.

    Attributes:
        fingerprint: That of the log.
        seed: Random seed, for everything but the noise of differential privacy.
        tests: On how many events of the log a task was tried.
        counts: What the log holds.
        bands: Its queries, by how many users issued them.
        configurations: The releases.
        rows: Every number of them.
        policy: What a release must meet to be recommended.
    """

    fingerprint: str
    seed: int
    tests: int
    counts: Counts
    bands: tuple[Band, ...]
    configurations: tuple[Configuration, ...]
    rows: tuple[Row, ...]
    policy: Policy = field(default_factory=Policy)
    _index: dict[tuple[str, str, str], Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = {(row.configuration, row.measure): row for row in self.rows[::-1]}
        found = {(*key, ""): row for key, row in first.items()}
        found |= {(row.configuration, row.measure, row.setting): row for row in self.rows[::-1]}
        object.__setattr__(self, "_index", found)

    def value(self, configuration: str, measure: str, setting: str = "") -> float | None:
        """A number of a configuration, by the id of its measure or attack; of several settings, the first."""
        row = self._index.get((configuration, measure, setting))
        return None if row is None else row.value

    def judgement(self, configuration: str) -> Judgement | None:
        """Whether a release meets the policy; None if nothing was released."""
        known = next(
            (one.known for one in self.configurations if one.name == configuration and one.status == "done"), None
        )
        return None if known is None else judge(self.policy, known)

    def meets(self, configuration: str) -> bool:
        """Whether a release meets the policy. What cannot be said does not."""
        judged = self.judgement(configuration)
        return judged is not None and judged.meets is True

    @property
    def meeting(self) -> tuple[str, ...]:
        """The releases that meet the policy."""
        return tuple(configuration.name for configuration in self.configurations if self.meets(configuration.name))

    def ranked(self, configuration: str, measure: str, setting: str = "") -> float | None:
        """A number of a configuration that releases can be ranked by; None if it does not separate them."""
        row = self._index.get((configuration, measure, setting))
        return None if row is None or not row.separates else row.value

    @property
    def unranked(self) -> dict[str, str]:
        """The measures that nothing is ranked by because they do not separate releases, and why."""
        found: dict[str, str] = {}
        for row in self.rows:
            if not row.separates:  # the shortest says nothing of a single release
                found[row.label] = min(found.get(row.label, row.why), row.why, key=len)
        return found

    def kept(self, configuration: str) -> dict[str, float | None]:
        """What a release keeps, in the numbers that decide.

        Of `distinct queries`, of those of the `tail` of fewer than five users, of users' `profiles` (SRP above random
        groups) and of the precision of `terms` (1 - NCP); each None where it does not apply or does not separate.
        """
        lost = self.ranked(configuration, "certainty_penalty")
        return {
            "distinct queries": self.ranked(configuration, "queries_kept"),
            "tail": self._tail(configuration),
            "profiles": self.ranked(configuration, "profile_retention"),
            "terms": None if lost is None else 1 - lost,
        }

    def _tail(self, configuration: str) -> float | None:
        few = [band for band in self.bands if band.queries and band.label in TAIL]
        kept = [self.value(configuration, "queries_kept_by_users", band.label) for band in few]
        if not few or None in kept:
            return None
        total = sum(band.queries for band in few)
        return sum((share or 0.0) * band.queries for share, band in zip(kept, few, strict=True)) / total

    def risk(self, configuration: str) -> float | None:
        """The share of queries that an attacker with half of each history links to the right person.

        It is the number that the policy limits (`max_linkage`), in the worst setting. Of hashed words, the share that
        is read again if that is more. None if it was not measured, which is never a risk of 0.
        """
        judged = self.judgement(configuration)
        lines = () if judged is None else judged.criteria
        found = [one.found for one in lines if one.id in ("linkage", "tokens") and one.found is not None]
        return max(found, default=None)

    @property
    def frontiers(self) -> tuple[Frontier, ...]:
        """Risk against three kinds of utility; each release is on those that apply to it."""
        return tuple(self._frontier(name, utility) for name, utility in UTILITIES.items())

    def _frontier(self, name: str, utility: str) -> Frontier:
        points, apart = {}, {}
        for configuration in self.configurations:
            kept, risk = self.kept(configuration.name)[name], self.risk(configuration.name)
            if kept is None or not configuration.holds:
                continue
            if not configuration.linked:
                apart[configuration.name] = kept
            elif risk is not None:
                points[configuration.name] = (kept, risk)
        best: list[str] = []
        most = 0.0  # who keeps nothing has nothing to compare
        for found, (kept, _) in sorted(points.items(), key=lambda point: (point[1][1], -point[1][0], point[0])):
            if kept > most:
                best.append(found)
                most = kept
        return Frontier(utility, points, tuple(best), apart)

    def chart(self, utility: str = "distinct queries") -> Any:
        """What each release keeps against its risk, as an Altair chart: one point per configuration.

        Args:
            utility: What is kept: `distinct queries`, `profiles` or `terms`; see `kept`.
        """
        if utility not in UTILITIES:
            raise QueryveilError(f"There is no utility '{utility}'; {did_you_mean(utility, UTILITIES)}.")
        return comparison_chart(self, self._frontier(utility, UTILITIES[utility]))

    def to_arrow(self) -> pa.Table:
        """One row per number, with all that is needed to make it again."""
        made = {one.name: one for one in self.configurations}
        rows = [
            {
                "method": made[row.configuration].method,
                "k": made[row.configuration].k,
                "parameters": json.dumps(made[row.configuration].parameters),
                "seed": self.seed,
                "fingerprint": self.fingerprint,
                "label": row.label,
                **asdict(row),
            }
            for row in self.rows
        ]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def _repr_html_(self) -> str:
        rows = []
        for one in self.configurations:
            found = (*self.kept(one.name).values(), self.risk(one.name))
            shown = (None if value is None else percent(value) for value in found)
            rows.append((one.name, one.status, self.meets(one.name), *shown))
        numbers = ("distinct queries", "tail", "profiles", "terms", "risk")
        names = ("configuration", "status", "meets the policy", *numbers)
        title = f"Comparison: {len(self.meeting)} of {len(rows)} configurations meet the policy"
        return html_rows(title, names, rows, numbers)


UTILITIES = {
    "distinct queries": "distinct queries kept",
    "profiles": MEASURES["profile_retention"].label,
    "terms": "term precision (1 - NCP)",
}


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("configuration", "method")),
        ("k", pa.int64()),
        ("parameters", pa.string()),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("fingerprint", "kind", "group", "measure", "setting", "label")),
        *((name, pa.float64()) for name in ("value", "low", "high", "best", "baseline", "control")),
        ("unit", pa.string()),
        ("succeeds", pa.bool_()),
        ("why", pa.string()),
        ("separates", pa.bool_()),
    ]
)
