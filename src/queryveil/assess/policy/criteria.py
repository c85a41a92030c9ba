"""The lines of a policy, and whether a release meets each of them."""

from collections.abc import Sequence

from queryveil.assess.policy.evidence import FEW, NO_QUERIES, Evidence, Number
from queryveil.assess.policy.judgement import Criterion, Judgement, Unit, upper_end
from queryveil.assess.policy.rules import Policy
from queryveil.errors import option

LINKAGE, ATTRIBUTION, TOKENS = "history_linkage", "attribution", "token_hashing"
SYBIL, PERSONAL = "sybil", "personal_data"
ATTACKS = (LINKAGE, ATTRIBUTION, TOKENS, SYBIL, PERSONAL)
"""The attacks that a policy asks for."""


def judge(policy: Policy, known: Evidence) -> Judgement:
    """Whether a release meets a policy.

    A share is an estimate: it is within the limit if the upper end of its interval is, and above the limit if the
    estimate is; between the two the result is unknown. What was not measured is not met.

    Args:
        policy: The policy.
        known: What is known of the release.
    """
    criteria = (
        _promises(known),
        _people(policy, known),
        _estimated(
            known,
            LINKAGE,
            "linkage",
            "queries that an attacker links to the right person",
            policy.max_linkage,
        ),
        _attribution(policy, known),
        _tokens(policy, known),
        _exposed(policy, known),
        _planted(policy, known),
        _personal(policy, known),
    )
    states = {one.met for one in criteria}
    return Judgement(False if False in states else None if None in states else True, criteria)


def _promises(known: Evidence) -> Criterion:
    label = "promises that the verifier refutes"
    met, why = (None, "Run 'queryveil verify'.") if known.refuted is None else (known.refuted == 0, "")
    if known.refuted:
        why = "The release does not keep its promises."
    return Criterion("promises", label, 0, False, known.refuted, None, "promises", met, why)


def _people(policy: Policy, known: Evidence) -> Criterion:
    if known.epsilon is not None:
        met = known.epsilon <= policy.max_epsilon
        why = "" if met else "Its differential privacy is too weak."
        if known.delta > policy.max_delta:
            met = False
            why = f"Its delta of {known.delta:g} is above {policy.max_delta:g}, so it promises next to nothing."
        label = "epsilon of its differential privacy"
        return Criterion("epsilon", label, policy.max_epsilon, False, known.epsilon, None, "epsilon", met, why)
    k = known.k or 1
    why = ""
    if k < policy.min_k:
        why = "A query or record has too few people behind it." if known.k else "It promises nothing about people."
    label = "people promised behind each query or record"
    return Criterion("k", label, policy.min_k, True, k, None, "people", k >= policy.min_k, why)


def _estimated(known: Evidence, attack: str, id: str, label: str, limit: float) -> Criterion:
    """A criterion about a share that an attack estimates in one setting or several, the worst of which counts."""
    tried = [one for one in known.numbers if one.attack == attack]
    found = [one for one in tried if one.value is not None]
    missing = _missing(tried)
    if not found:
        return Criterion(id, label, limit, False, None, None, "share", None, missing)
    worst = max(found, key=lambda one: (_beyond(one, limit), one.value or 0.0))
    met = (True, None, False)[_beyond(worst, limit)]
    setting = f"Worst case: {worst.setting}." if worst.setting else ""
    why = {
        True: "",
        None: "The estimate is within the limit but its interval is not: a log of more people would decide.",
        False: _WHY[attack],
    }[met]
    if met is not False and not any(one.setting.endswith(_NEEDED[attack]) for one in found):
        met, why = None, missing  # a weaker attacker shows nothing
    reason = " ".join(part for part in (why, setting) if part)
    return Criterion(id, label, limit, False, worst.value, worst.high, "share", met, reason)


_NEEDED = {LINKAGE: "random half", ATTRIBUTION: "half of all members", TOKENS: ""}
"""The setting without which an attack says too little."""

_WHY = {
    LINKAGE: "Half of a person's history leads to too much of the rest: link fewer events, or ask for a larger k.",
    ATTRIBUTION: "An attacker who knows part of a member's history can split the record.",
    TOKENS: "How often a token occurs, and next to which others, says which word it is.",
}


def _beyond(one: Number, limit: float) -> int:
    """0 if a number is within a limit, 2 if it is above it, 1 if that is unknown."""
    value = one.value or 0.0
    if value > limit:
        return 2
    return int(upper_end(value, one.high) > limit)


def _attribution(policy: Policy, known: Evidence) -> Criterion:
    label = "queries of a shared record that an attacker links to the right member"
    if not known.shared:
        return _outside("attribution", label, policy.max_attribution, "share", "No record is shared by several people.")
    return _estimated(known, ATTRIBUTION, "attribution", label, policy.max_attribution)


def _tokens(policy: Policy, known: Evidence) -> Criterion:
    label = "hashed words that are recovered"
    if known.kind != "tokens":
        return _outside("tokens", label, policy.max_token_recovery, "share", "No word is hashed.")
    return _estimated(known, TOKENS, "tokens", label, policy.max_token_recovery)


def _exposed(policy: Policy, known: Evidence) -> Criterion:
    k = known.k or FEW
    label = f"queries of fewer than {k} people that no promise covers"
    if known.kind in NO_QUERIES:
        return _outside("exposed_queries", label, policy.max_exposed_queries, "queries", NO_QUERIES[known.kind])
    count = 0 if known.covered else known.few
    why = ""
    if known.covered and known.few:
        why = f"{known.few:,} released queries of fewer than {k} people are covered by a promise about queries."
    met = count <= policy.max_exposed_queries
    if not met:
        why = f"Nothing protects these queries; ask for at least {k} people behind each."
    return Criterion("exposed_queries", label, policy.max_exposed_queries, False, count, None, "queries", met, why)


def _planted(policy: Policy, known: Evidence) -> Criterion:
    limit = (known.k or FEW) if policy.min_planted_accounts == "k" else policy.min_planted_accounts
    label = "planted accounts that bring a chosen query into the release"
    if known.kind in NO_QUERIES:
        return _outside("planted_accounts", label, limit, "accounts", NO_QUERIES[known.kind], least=True)
    found, why = _exact(known, SYBIL)
    met = None if found is None else found >= limit
    if met is False:
        why = (
            "This few accounts of one attacker bring a query of their choice into the release: ask for more people"
            f" behind each query itself ({option('min_query_users')}), or allow fewer accounts in your own policy."
        )
    return Criterion("planted_accounts", label, limit, True, found, None, "accounts", met, why)


def _personal(policy: Policy, known: Evidence) -> Criterion:
    limit = policy.max_residual_pii / 100_000
    label = "queries of fewer than 3 people that hold personal data"
    if known.kind in NO_QUERIES:
        return _outside("residual_pii", label, limit, "rate", NO_QUERIES[known.kind])
    found, why = _exact(known, PERSONAL)
    met = None if found is None else found <= limit
    if met is False:
        scrub = option("scrub", "remove", python="scrub(log, 'remove')")
        why = f"Scrub the log first: {scrub}."
    return Criterion("residual_pii", label, limit, False, found, None, "rate", met, why)


def _exact(known: Evidence, attack: str) -> tuple[float | None, str]:
    """What an attack counted, or why it did not run."""
    tried = [one for one in known.numbers if one.attack == attack]
    found = next((one.value for one in tried if one.value is not None), None)
    return found, "" if found is not None else _missing(tried)


def _missing(tried: Sequence[Number]) -> str:
    """Why an attack was not run, and what to do about it."""
    skipped = next((one for one in tried if one.value is None), None)
    if skipped is None:
        return "Run 'queryveil attack'."
    if skipped.needs_user_map:
        given = option("user_map", "FILE", python="Release.load(path, log=log, user_map=FILE)")
        return f"Run again with the user map: {given}."
    return f"The attack was not tried: {skipped.why.removesuffix('.')}."


def _outside(id: str, label: str, limit: float, unit: Unit, why: str, *, least: bool = False) -> Criterion:
    """A criterion that does not apply to a kind of release."""
    return Criterion(id, label, limit, least, None, None, unit, True, why)
