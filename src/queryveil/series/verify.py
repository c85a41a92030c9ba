"""Does a series keep its promises? Every state is made again from the logs, and every release checked against it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from queryveil.claims import Verdict
from queryveil.claims.certificates import Certificate
from queryveil.errors import option
from queryveil.log import LocalLog, QueryLog
from queryveil.release import Release
from queryveil.release.manifest import LISTS
from queryveil.series.ledger import Ledger, Settings
from queryveil.series.state import OtherLogError, Step, digest_of, method_of, queries_of, replayed
from queryveil.verification import verify
from queryveil.verification.file_checks import files_unchanged
from queryveil.verification.verifier import Verification

_CHAIN = "The releases are those of the ledger, unchanged and in their order, and each names the one before."
_BUDGET = "The releases together stay within the privacy budget."
_LOGS = "The logs are those that were added, in their order."
_UNTIMED = "Events without a time cannot be compared between logs, so whether two logs have the same ones is open."
_ONCE = "No event is in two releases."
_COUNTS = "The ledger counts what came, left, expired and waits as the logs and releases say."


def check_series(ledger: Ledger, releases: Sequence[Release], logs: Iterable[QueryLog] | None) -> Verification:
    """Check a series.

    Args:
        ledger: Its ledger.
        releases: All releases, in their order.
        logs: All logs that were added, in their order; None checks only what needs none.

    Returns:
        The verdicts: the chain of manifests; and with the logs, that these are the ones that were added, that every
        release keeps its promises against all events that waited for it, that no event is in two releases, and that
        the ledger counts right. After a verdict that does not hold, later ones may be missing.
    """
    chain = _chain(ledger, releases)
    found = [chain, *_budget(ledger, releases)]
    if not all(verdict.holds for verdict in found):
        return Verification(tuple(found))
    if logs is None:
        named = option("original", python="'logs'")
        sentence = f"Nothing was checked against the logs; give all of them, in their order, with {named}."
        return Verification(tuple(found), (sentence,))
    return _against_logs(ledger, releases, logs, found)


def _chain(ledger: Ledger, releases: Sequence[Release]) -> Verdict:
    periods, method = ledger.releases, method_of(ledger.settings)
    known = [period.manifest for period in periods]
    digests = [digest_of(release) for release in releases]
    for place, (release, digest) in enumerate(zip(releases, digests, strict=True), 1):
        if digest in digests[: place - 1]:
            return Verdict(_CHAIN, False, f"{release.folder} is given twice")
        stated = release.manifest.series
        if stated is None:
            return Verdict(_CHAIN, False, f"{release.folder} is not part of a series")
        if digest not in known:
            return Verdict(_CHAIN, False, f"{release.folder} is not a release of this ledger, or was changed")
        if place > len(known) or digest != known[place - 1]:
            right = known.index(digest) + 1
            return Verdict(_CHAIN, False, f"{release.folder} is release {right}, and stands in the place of {place}")
        unchanged = files_unchanged(release, release.folder) if release.folder is not None else None
        if unchanged is not None and not unchanged.holds:
            return Verdict(_CHAIN, False, f"{release.folder}: {unchanged.counterexample}")
        if (release.manifest.method, release.manifest.parameters) != (method.name, method.parameters()):
            return Verdict(_CHAIN, False, f"{release.folder} was made in another way than the ledger says")
        if stated.number != place or stated.previous != (known[place - 2] if place > 1 else None):
            return Verdict(_CHAIN, False, f"the manifest of {release.folder} has another place in the series")
    if len(releases) < len(known):
        return Verdict(_CHAIN, False, f"release {len(releases) + 1} is missing")
    return Verdict(_CHAIN, True)


def _budget(ledger: Ledger, releases: Sequence[Release]) -> list[Verdict]:
    """Whether the budgets add up, if the method has one; `State.as_log` computes them anew for each manifest."""
    budget = ledger.settings.budget_epsilon
    if budget is None:
        return []
    for release in releases:
        stated = release.manifest.series.spent if release.manifest.series is not None else None
        if stated is None or stated.epsilon > budget * (1 + 1e-9) or stated.delta != ledger.settings.budget_delta:
            return [Verdict(_BUDGET, False, f"{release.folder} states another budget, or more than that")]
    return [Verdict(_BUDGET, True)]


def _against_logs(
    ledger: Ledger, releases: Sequence[Release], logs: Iterable[QueryLog], found: list[Verdict]
) -> Verification:
    unchecked: dict[str, None] = {}
    content = b""
    try:
        for step in replayed(ledger, releases, logs):
            wrong = []
            if step.release is not None:
                checked = _checked(step.release, step.log, ledger.settings)
                number = step.after.releases
                unchecked |= dict.fromkeys(f"Release {number}: {sentence}" for sentence in checked.unchecked)
                wrong = [
                    replace(verdict, claim=f"Release {number}: {verdict.claim}")
                    for verdict in checked.verdicts
                    if not verdict.holds
                ]
            wrong = wrong or _miscounted(step, ledger)
            content = step.after.content
            if not step.arrived.fresh.timed.all():
                unchecked[_UNTIMED] = None
            if wrong:
                return Verification((*found, *wrong), tuple(unchecked))
    except OtherLogError as error:
        return Verification((*found, Verdict(_LOGS, False, str(error))), tuple(unchecked), other_log=True)
    if content.hex() != ledger.content:
        return Verification((*found, Verdict(_COUNTS, False, "'content' of the ledger is not right")), tuple(unchecked))
    kept = f"Each of the {len(releases)} releases keeps its promises against the events that waited for it."
    once = Verdict(_ONCE, True, how="the events of a release left before the next one was checked")
    held = [Verdict(_LOGS, True), Verdict(kept, True), once, Verdict(_COUNTS, True)]
    return Verification((*found, *held), tuple(unchecked))


def _checked(release: Release, log: LocalLog, settings: Settings) -> Verification:
    """Check a release against what waited for it."""
    lists = [path for step in _steps(settings.parameters) for path in _lists(step)]
    return verify(release, log, certificate=Certificate(settings.seed), lists=lists)


def _miscounted(step: Step, ledger: Ledger) -> list[Verdict]:
    """What the ledger counts in another way than the logs and releases say."""
    period, arrived = step.period, step.arrived
    assert step.after.waiting is not None  # noqa: S101
    counted = {name: getattr(arrived, name) for name in ("events", "users", "late", "expired", "start", "end")}
    left = int(step.left.sum())
    released = left
    if step.release is not None and not step.release.manifest.private:
        released = step.release.manifest.counts.events
    counted |= {
        "number": len(step.before.ends),
        "forgotten": sum(step.forgotten),
        "released": released,
        "left_out": left - released,
        "waiting": len(step.after.waiting),
        "waiting_queries": len(step.after.waiting.texts["query"]),
    }
    if step.release is not None:
        queries, series = queries_of(step.release), step.log.stats.series
        counted |= {
            "release": step.after.releases,
            "queries": len(queries),
            "new_queries": int((step.before.published.times_of(queries) == 0).sum()),
            "waited": step.before.waited(step.left, arrived.end),
            "epsilon": None if series is None or series.spent is None else series.spent.epsilon,
        }
    odd = next((name for name, value in counted.items() if not _agrees(getattr(period, name), value)), None)
    return [] if odd is None else [Verdict(_COUNTS, False, f"'{odd}' of period {period.number} is not right")]


def _agrees(stated: object, found: object) -> bool:
    """Whether two numbers are the same; a mean depends a little on the order in which a cluster adds up."""
    if isinstance(stated, float) and isinstance(found, float):
        return math.isclose(stated, found, rel_tol=1e-9)
    return stated == found


def _steps(parameters: dict[str, object]) -> list[dict[str, object]]:
    """The parameters of every step."""
    steps = parameters.get("steps")
    return [step["parameters"] for step in steps] if isinstance(steps, list) else [parameters]


def _lists(parameters: dict[str, object]) -> list[Path]:
    return [Path(str(parameters[name])) for name in LISTS if parameters.get(name) is not None]
