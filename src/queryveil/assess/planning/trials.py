"""What is found out about one release of a plan: step by step, the cheapest first, and stored as it is found."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from queryveil import __version__
from queryveil.assess.attacks import Findings, attack
from queryveil.assess.comparison import Configuration
from queryveil.assess.comparison.configurations import as_json
from queryveil.assess.comparison.results import Status
from queryveil.assess.evaluation import finite
from queryveil.assess.measures import MEASURES, Assessment
from queryveil.assess.planning.space import method_of
from queryveil.assess.policy import Evidence, Judgement, Policy, gather, judge, numbers, refuted
from queryveil.assess.policy.criteria import ATTRIBUTION, LINKAGE, PERSONAL, SYBIL, TOKENS
from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.knowledge import Taxonomy
from queryveil.log import LocalLog
from queryveil.release import Release, as_of
from queryveil.verification.verifier import run_checks

ORDER = (PERSONAL, ATTRIBUTION, TOKENS, SYBIL, LINKAGE)
"""The attacks of a policy, those first that cost least or that most releases fail."""
FALLING = {"exposed_queries": None, "attribution": ATTRIBUTION, "linkage": LINKAGE}
"""Lines of a policy that a larger k meets if a smaller one does, each with its attack. How many planted accounts it
takes is not among them: it depends on which query the attacker chooses."""


@dataclass(frozen=True)
class Trial:
    """What is known of a release.

    Attributes:
        status: Whether there is a release.
        why: Why there is none.
        evidence: What a policy needs to know, as far as it was found out; None before the release is made.
        tried: The attacks that were tried.
        scores: What it keeps, by measure and detail; None where that does not apply or does not separate.
    """

    status: Status = "done"
    why: str = ""
    evidence: Evidence | None = None
    tried: tuple[str, ...] = ()
    scores: dict[str, float | None] = field(default_factory=dict)


_STORED: TypeAdapter[Trial] = TypeAdapter(Trial)


class Trials:
    """The releases of a plan, and what is known of each.

    Args:
        log: The log.
        policy: What a release must meet.
        taxonomy: Where measures look queries up.
        places: What the caller named to look queries and sites up.
        seed: Random seed.
        folder: Where to store what is found; None for nowhere.
    """

    def __init__(
        self,
        log: LocalLog,
        policy: Policy,
        taxonomy: Taxonomy,
        places: Sequence[str | None],
        seed: int,
        folder: Path | None,
    ) -> None:
        self._log, self._policy, self._taxonomy, self._seed, self._folder = log, policy, taxonomy, seed, folder
        self._given = ["plan", __version__, log.fingerprint, taxonomy.digest, places, seed]
        self._known: dict[str, Trial] = {}
        self._made: tuple[str, Release] | None = None

    def judged(self, one: Configuration) -> Judgement | None:
        """Whether a release meets the policy, found out until a line is missed; None if there is no release."""
        for attack_id in (None, *ORDER):
            judged = self._after(one, attack_id)
            if judged is None or judged.missed:
                return judged
        return self._checked(one)

    def misses(self, one: Configuration, line: str) -> bool:
        """Whether a release misses a line of the policy that is in `FALLING`; False if that is unknown."""
        judged = self._after(one, FALLING[line])
        return judged is not None and any(missed.id == line for missed in judged.missed)

    def in_full(self, one: Configuration) -> Judgement | None:
        """Every line of the policy, whether or not another one is missed."""
        for attack_id in ORDER:
            self._after(one, attack_id)
        return self._checked(one)

    def known(self, one: Configuration) -> Judgement | None:
        """What was found out by now; None if there is no release."""
        evidence = self.trial(one).evidence
        return None if evidence is None else judge(self._policy, evidence)

    def score(self, one: Configuration, measure: str, detail: str) -> float | None:
        """What a release keeps by a measure; None where it does not apply or does not separate."""
        key = f"{measure} {detail}"
        if key not in self.trial(one).scores and self._begun(one):
            # Who is who, also where a pipeline scrubbed the log.
            made = as_of(self._release(one), self._log)
            on = Assessment(made, self._log, self._taxonomy, seed=self._seed)
            try:
                values = [finite(MEASURES[measure], value) for value in MEASURES[measure].of(on)]
            except QueryveilError:
                values = []
            found = next((value for value in values if not detail or value.detail == detail), None)
            score = None if found is None or not found.separates else found.value
            trial = self.trial(one)
            self._store(one, replace(trial, scores={**trial.scores, key: score}))
        return self.trial(one).scores.get(key)

    def trial(self, one: Configuration) -> Trial:
        """What is known of a release."""
        if one.name not in self._known:
            self._known[one.name] = self._stored(one) or Trial()
        return self._known[one.name]

    def _begun(self, one: Configuration) -> bool:
        """Make a release, and count what needs no attack; whether there is a release."""
        trial = self.trial(one)
        if trial.status == "done" and trial.evidence is None:
            try:
                release = self._release(one)
            except QueryveilError as error:
                trial = Trial("failed", str(error))
            else:
                if release.manifest.counts.rows == 0:
                    trial = Trial("empty", "Nothing is released.")
                else:
                    none = Findings(release.manifest.method, (), ())
                    trial = replace(trial, evidence=gather(release, self._log, none))
            self._store(one, trial)
        return trial.status == "done"

    def _after(self, one: Configuration, attack_id: str | None) -> Judgement | None:
        """What is known after an attack, or before any."""
        if not self._begun(one):
            return None
        trial = self.trial(one)
        if attack_id is not None and attack_id not in trial.tried and trial.evidence is not None:
            taxonomy = one.setting("taxonomy")
            found = attack(
                self._release(one),
                self._log,
                seed=self._seed,
                taxonomy=None if taxonomy == "wordnet" else taxonomy,
                only=attack_id,
            )
            evidence = replace(trial.evidence, numbers=(*trial.evidence.numbers, *numbers(found)))
            self._store(one, replace(trial, evidence=evidence, tried=(*trial.tried, attack_id)))
        return self.known(one)

    def _checked(self, one: Configuration) -> Judgement | None:
        """What is known after the verifier."""
        trial = self.trial(one)
        if trial.evidence is not None and trial.evidence.refuted is None:
            checked = run_checks(self._release(one), self._log)
            self._store(one, replace(trial, evidence=replace(trial.evidence, refuted=refuted(checked))))
        return self.known(one)

    def _release(self, one: Configuration) -> Release:
        """The release: the last that was made, or one made now."""
        if self._made is None or self._made[0] != one.name:
            self._made = None  # two at a time would only cost memory
            self._made = one.name, method_of(one).anonymize(self._log, seed=self._seed)
        return self._made[1]

    def _file(self, one: Configuration) -> Path | None:
        if self._folder is None:
            return None
        what = json.dumps([*self._given, one.method, one.parameters], sort_keys=True)
        return self._folder / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.json"

    def _stored(self, one: Configuration) -> Trial | None:
        """What an earlier run found; None if there is nothing that can be read, or if the release failed."""
        file = self._file(one)
        try:
            found = None if file is None else _STORED.validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return None
        return None if found is None or found.status == "failed" else found

    def _store(self, one: Configuration, trial: Trial) -> None:
        self._known[one.name] = trial
        file = self._file(one)
        if file is not None:
            write_whole(file, as_json(asdict(trial)), overwrite=True, private=True)
