"""The configurations of a comparison: which there are, how one is made, and how it is stored."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from queryveil.assess.attacks import Finding, attack
from queryveil.assess.comparison.results import Configuration, Row
from queryveil.assess.evaluation import Measured, evaluate
from queryveil.assess.policy import gather
from queryveil.errors import QueryveilError, did_you_mean
from queryveil.files.folders import write_whole
from queryveil.knowledge import taxonomy_name
from queryveil.log import LocalLog
from queryveil.methods import METHODS, STEPS, Pipeline, Rules
from queryveil.verification.verifier import run_checks

KS = (2, 5, 10, 20)
EPSILONS = (1.0, 10.0)
KNOWN = (1, 3, 5)
"""How many queries of a person the attacker saw."""


def grid(
    methods: Sequence[str] | None = None,
    *,
    ks: Sequence[int] = KS,
    epsilons: Sequence[float] = EPSILONS,
    taxonomy: str = "wordnet",
    web_directory: str | None = None,
    times: bool = True,
) -> list[Configuration]:
    """The configurations of a comparison.

    Each method says what is tried of it (`Method.grid`). One that can link events is tried without links, by session
    and by user.

    Args:
        methods: Which methods; by default all.
        ks: Values of k.
        epsilons: Values of epsilon; delta is 1e-6.
        taxonomy: Where the methods that need it look queries up.
        web_directory: Where `search` looks sites up; by default in the same.
        times: Whether the log has times; without them there are no sessions.
    """
    configurations: list[Configuration] = []
    for name in METHODS if methods is None else dict.fromkeys(methods):
        if name not in METHODS:
            raise QueryveilError(f"There is no method '{name}'; {did_you_mean(name, METHODS)}.")
        fields = METHODS[name].model_fields
        settings = METHODS[name].grid(sorted(set(ks)), sorted(set(epsilons)))
        for label, parameters in settings:
            parameters = looking_in(name, parameters, taxonomy, web_directory)
            # A pipeline is known by the name of its recipe.
            title = label if name == Pipeline.name else ", ".join(part for part in (name, label) if part)
            k = Configuration(title, name, None, parameters).setting("k")
            configurations.append(Configuration(title, name, k, parameters))
            if "link" in fields and "link" not in parameters:
                for link in ("session", "user") if times else ("user",):
                    configurations.append(Configuration(f"{title}, link {link}", name, k, parameters | {"link": link}))
    return configurations


def looking_in(method: str, parameters: dict[str, Any], taxonomy: str, web_directory: str | None) -> dict[str, Any]:
    """Parameters with the taxonomy where a method, or a step of a pipeline, looks queries up."""
    if method == Pipeline.name:
        each = [(step["method"], step["parameters"]) for step in parameters["steps"]]
        looking = [(name, looking_in(name, given, taxonomy, web_directory)) for name, given in each]
        return {"steps": [{"method": name, "parameters": given} for name, given in looking]}
    field = STEPS[method].model_fields.get("taxonomy")
    if field is None:
        return parameters
    return parameters | {"taxonomy": taxonomy if field.default is not None else web_directory or taxonomy}


def _published(configuration: Configuration) -> Configuration:
    """A configuration with the name of its taxonomy alone, as in a manifest."""
    taxonomy = configuration.setting("taxonomy")
    if taxonomy is None:
        return configuration
    name = taxonomy_name(taxonomy)
    return replace(configuration, parameters=looking_in(configuration.method, configuration.parameters, name, name))


@dataclass(frozen=True)
class Job:
    """What is done to every configuration."""

    folder: Path
    taxonomy: str
    tests: int
    seed: int

    def file(self, configuration: Configuration) -> Path:
        """Where a configuration is stored."""
        parts = [configuration.method, *(f"{name}-{value}" for name, value in sorted(configuration.parameters.items()))]
        if configuration.method in (Rules.name, Pipeline.name):  # parameters are many, and have a name
            parts = [configuration.name]
        if "taxonomy" in configuration.parameters:
            parts = [part for part in parts if not part.startswith("taxonomy-")]
        return self.folder / (
            "_".join("".join(c if c.isalnum() or c in ".-" else "-" for c in p) for p in parts) + ".json"
        )

    def stored(self, configuration: Configuration) -> "Stored | None":
        """A configuration that is finished; None if it is not, or cannot be read."""
        found = _stored(self.file(configuration))
        if found is None or found.configuration.name != configuration.name:
            return None
        return found if found.configuration.parameters == _published(configuration).parameters else None

    def others(self, configurations: Sequence[Configuration]) -> "list[Stored]":
        """What earlier runs stored in the same folder beside some configurations."""
        mine = {self.file(configuration) for configuration in configurations}
        found = [_stored(file) for file in sorted(self.folder.glob("*.json")) if file not in mine]
        return [one for one in found if one is not None and one.configuration.method in METHODS]

    def do(self, configuration: Configuration, log: LocalLog) -> Configuration:
        """Make a configuration, and store it."""
        made, rows = self._made(configuration, log)
        write_whole(self.file(configuration), as_json(asdict(Stored(made, tuple(rows)))), overwrite=True, private=True)
        return made

    def _made(self, configuration: Configuration, log: LocalLog) -> tuple[Configuration, list[Row]]:
        method = METHODS[configuration.method](**configuration.parameters)
        taxonomy = configuration.setting("taxonomy") or "wordnet"
        configuration = _published(configuration)
        try:
            release = method.anonymize(log, seed=self.seed)
        except QueryveilError as error:
            return replace(configuration, status="failed", why=str(error)), []
        if release.manifest.counts.rows == 0:
            return replace(configuration, status="empty", why="Nothing is released."), []
        checked = run_checks(release, log)
        kept = evaluate(release, log, taxonomy=self.taxonomy, tests=self.tests, seed=self.seed)
        rows = [_kept(configuration, measured) for measured in kept.measured]
        found = attack(
            release,
            log,
            n_known=KNOWN,
            seed=self.seed,
            taxonomy=None if taxonomy == "wordnet" else taxonomy,
        )
        rows += [_found(configuration, finding) for finding in found.findings]
        rows += [
            Row(configuration.name, "risk", skipped.question, skipped.attack, "", None, why=skipped.why)
            for skipped in found.skipped
        ]
        made = replace(
            configuration,
            promises=tuple(claim.statement for claim in release.manifest.claims),
            holds=checked.holds,
            linked=bool({"user", "session"} & set(release.schema.names)),
            known=gather(release, log, found, checked),
            why="" if checked.holds else "The verifier refutes it.",
        )
        return made, rows


@dataclass(frozen=True)
class Stored:
    """A configuration with its numbers, as it is stored."""

    configuration: Configuration
    rows: tuple[Row, ...]

    @property
    def finished(self) -> bool:
        """Whether there is nothing to be gained by making it again: nothing failed, and no package was missing."""
        return self.configuration.status != "failed" and not any("pip install" in row.why for row in self.rows)


def _stored(file: Path) -> Stored | None:
    try:
        return TypeAdapter(Stored).validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _kept(configuration: Configuration, measured: Measured) -> Row:
    unit = "share" if measured.share else "number"
    return Row(
        configuration.name,
        "utility",
        measured.group,
        measured.measure,
        measured.detail,
        measured.value,
        best=measured.best,
        unit=unit,
        why=measured.why,
        separates=measured.separates,
    )


def _found(configuration: Configuration, finding: Finding) -> Row:
    return Row(
        configuration.name,
        "risk",
        finding.question,
        finding.attack,
        finding.setting,
        finding.estimate.value,
        low=finding.estimate.low,
        high=finding.estimate.high,
        baseline=finding.baseline,
        control=None if finding.control is None else finding.control.value,
        unit=finding.unit,
        succeeds=finding.succeeds,
    )


def as_json(value: object) -> bytes:
    """A value as a JSON file; the same value gives the same bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()
