"""What a release by each method must consist of and promise, stated apart from the methods."""

from collections.abc import Callable
from typing import Any, NamedTuple

from queryveil.claims import (
    AffineSessions,
    AffineUsers,
    AllowedQueries,
    AllUsers,
    BagUsers,
    BlockedWords,
    CellUsers,
    Claim,
    ClickedSites,
    ClickedUsers,
    CombinationUsers,
    ConceptUsers,
    CountedRows,
    DecidedQueries,
    DifferentialPrivacy,
    DisjointClicks,
    FragmentUsers,
    HashedWords,
    HiddenRows,
    IssuedQueries,
    LinkedEvents,
    PartOfLog,
    PrivateCounts,
    QuerySpelling,
    QueryUsers,
    RecordQueries,
    RecordUsers,
    RoundedCounts,
    RowUsers,
    Sessions,
    TermUsers,
    TimesRounded,
    ViewUsers,
)
from queryveil.knowledge import recall_taxonomy
from queryveil.log import QueryLog
from queryveil.release.manifest import Kind, Manifest

Given = dict[str, Any]


def required_claims(manifest: Manifest, log: QueryLog) -> list[Claim]:
    """What a release by some method with some parameters must promise.

    Raises:
        KeyError, TypeError or ValueError: If there is no such method, or the parameters are not those of the method.
    """
    if manifest.method != "pipeline" and manifest.scrub is not None and manifest.scrub.decisions is not None:
        raise ValueError("decisions that no step names")
    return REQUIRED[manifest.method].claims(manifest, log)


def _equality(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given = manifest.parameters
    return [PartOfLog(), QueryUsers(users=given["k"]), *_clicks(given["k"], log), *_linked(given)]


def _affinity(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given, k = manifest.parameters, manifest.parameters["k"]
    least = {
        "concept_min_users": given["concept_min_users"] or max(5, round(0.0001 * log.n_users)),
        "min_term_users": given["min_term_users"] or k,
    }
    same = {name: given[name] for name in ("theta", "vectors", "min_query_users", "max_new_users", "similarity")}
    same |= {f"theta_{way}": given[f"theta_{way}"] for way in ("meaning", "clicks") if way in given["similarity"]}
    if tuple(given["similarity"]) != ("words",):
        # Those of another version are nothing to refute: `other_tables` finds them.
        (same["tables"],) = {one.tables for one in manifest.claims if isinstance(one, AffineUsers) and one.tables}
    begin = [PartOfLog(), AffineUsers(users=k, **least, **same), *_clicks(k, log)]
    if given["unit"] == "query":
        return [*begin, *_linked(given)]
    del least["min_term_users"]
    alike = {name: given[name] for name in ("theta", "vectors", "max_new_users")}
    sessions = AffineSessions(users=k, sessions=_sessions(given), **least, **alike)
    return [*begin, *_linked(given, whole=False), sessions]


def _records(manifest: Manifest, log: QueryLog) -> list[Claim]:
    k, compact = manifest.parameters["k"], manifest.parameters["compact"]
    shared = [RecordUsers(users=k, compact=compact), RecordQueries(users=k, compact=compact)]
    return [IssuedQueries(), *shared, AllUsers(compact=compact)]


def _mdav(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given = manifest.parameters
    if given["distance"] != "semantic":
        return _records(manifest, log)
    return [IssuedQueries(), RecordUsers(users=given["k"], compact=given["compact"])]


def _bags(manifest: Manifest, log: QueryLog) -> list[Claim]:
    return [BagUsers(**_tree(manifest), duplicates=manifest.parameters.get("duplicates", False))]


def _wngen(manifest: Manifest, log: QueryLog) -> list[Claim]:
    return [ConceptUsers(**_tree(manifest)), *_linked(manifest.parameters, items=True)]


def _zealous(manifest: Manifest, log: QueryLog) -> list[Claim]:
    least = manifest.parameters["min_users"]
    return [IssuedQueries(), *([QueryUsers(users=least)] if least > 1 else []), _private(manifest)]


def _dp_set(manifest: Manifest, log: QueryLog) -> list[Claim]:
    return [IssuedQueries(), _private(manifest)]


def _hash(manifest: Manifest, log: QueryLog) -> list[Claim]:
    return [HashedWords(sessions=_sessions(manifest.parameters))]


def _poblete(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given = manifest.parameters
    sites = ClickedSites(documents=given["k"], sites=given["sites"])
    return [PartOfLog(), sites, DisjointClicks(), *_linked(given)]


def _rules(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given = manifest.parameters
    claims: list[Claim] = [PartOfLog()]
    if given["min_query_users"] is not None:
        claims.append(QueryUsers(users=given["min_query_users"]))
    if given["min_term_users"] is not None:
        claims.append(TermUsers(users=given["min_term_users"]))
    if given["min_fragment_users"] is not None:
        about = {"words": given["fragment_words"], "noun_phrases": given["noun_phrases"]}
        listed, elsewhere = given["fragment_list"], manifest.counted_on is not None
        claims.append(FragmentUsers(users=given["min_fragment_users"], counted_on=elsewhere, listed=listed, **about))
    spelling = QuerySpelling(**{name: given[name] for name in ("max_characters", "max_terms", "no_digits", "no_at")})
    if spelling != QuerySpelling():
        claims.append(spelling.model_copy(update={"lifted": given.get("decisions")}))
    for use, claim in _LISTED.items():
        if given.get(use) is not None:
            claims.append(claim(listed=given[use]))
    return claims + _beside(given, given["min_row_users"], log)


_LISTED: dict[str, Callable[..., Claim]] = {
    "allow_list": AllowedQueries,
    "block_list": BlockedWords,
    "decisions": DecidedQueries,
}
_NO_METADATA = ("query", "url", "rank", "period")


def _counts(manifest: Manifest, log: QueryLog) -> list[Claim]:
    given = manifest.parameters
    columns, totals, least = tuple(given["by"]), tuple(given["totals"]), given["min_row_users"]
    if set(given) != _COUNTS:
        raise ValueError("parameters")
    if given["epsilon"] is not None:
        return [*([IssuedQueries()] if "query" in columns else []), _private_counts(manifest)]
    metadata = tuple(name for name in columns if name not in _NO_METADATA)
    queries = given["min_query_users"] or least
    of_table: Given = {
        "columns": columns,
        "users": least,
        "query_users": queries if "query" in columns else None,
        "metadata_users": (given["min_metadata_users"] or least) if metadata else None,
        "period": given["period"] if "period" in columns else None,
        "totals": totals,
    }
    claims: list[Claim] = [QueryUsers(users=queries)] if "query" in columns else []
    claims.append(CountedRows(**of_table, base=given["base"], band=_one_of(given["users"], "exact", "band") == "band"))
    claims.append(CellUsers(**of_table))
    if metadata:
        claims.append(CombinationUsers(users=given["min_metadata_users"] or least, columns=metadata))
    if totals and given["secondary"]:
        claims.append(HiddenRows(**of_table))
    return [*claims, *([] if given["base"] is None else [RoundedCounts(base=given["base"])])]


_COUNTS = {
    *("by", "min_row_users", "min_query_users", "min_metadata_users", "period", "users", "totals", "secondary"),
    *("base", "epsilon", "delta", "max_rows_per_user", "keep"),
}
_NO_NOISE: Given = {"min_query_users": None, "min_metadata_users": None, "totals": [], "base": None, "users": "exact"}


def _private_counts(manifest: Manifest) -> Claim:
    """The claim of differential privacy that fits the parameters, if the manifest makes it."""
    given = manifest.parameters
    if manifest.scrub is not None and (manifest.scrub.rare_term_users or manifest.scrub.decisions) is not None:
        raise ValueError("which words are rare, and what is decided, depends on all users together")
    if any(given[name] != value for name, value in _NO_NOISE.items()):
        raise ValueError("parameters that noise has no place for")
    period = given["period"] if "period" in given["by"] else None
    for claim in manifest.claims:
        if isinstance(claim, PrivateCounts) and len(claim.steps) == 1:
            (step,) = claim.steps
            same = (tuple(given["by"]), period, given["keep"]) == (claim.columns, claim.period, claim.keep)
            noise = (given["max_rows_per_user"], given["min_row_users"]) == (step.d, step.pre_threshold)
            if same and noise and claim.epsilon <= given["epsilon"] and claim.delta <= given["delta"]:
                return claim
    asked: Given = {name: given[name] for name in ("epsilon", "delta", "keep")}
    return PrivateCounts(**asked, steps=(), columns=given["by"], period=period)


def _one_of(value: Any, *known: str) -> str:
    if value not in known:
        raise ValueError(value)
    return str(value)


def _count_columns(given: Given, log: QueryLog) -> list[str]:
    """The columns of a table of counts."""
    chosen = given["by"]
    columns = ["total"] if given["totals"] else []
    columns += [name for name in ("query", "url", "rank") if name in chosen]
    columns += [name for name in chosen if name not in _NO_METADATA]
    columns += ["period"] if "period" in chosen else []
    if given["epsilon"] is not None:
        return [*columns, "users"]
    columns += ["users" if given["users"] == "exact" else "users_band", "events"]
    if not log.has_results or given["totals"]:
        return columns
    columns += ["views"] if log.has_views else []
    return [*columns, "clicks", *([] if "rank" in chosen else ["mean_rank"])]


def _columns(manifest: Manifest, log: QueryLog) -> list[Claim]:
    return [PartOfLog(), *_beside(manifest.parameters, manifest.parameters["min_click_users"], log)]


def _beside(given: Given, clicked: int | None, log: QueryLog) -> list[Claim]:
    """What is promised about columns beside the query; `clicked` is the least users of a click."""
    claims: list[Claim] = []
    clicks = [] if clicked is None else _clicks(clicked, log)
    if given["min_row_users"] is not None:
        known = [name for name in ("device", "country") if name in log.stats.extras]
        claims.append(RowUsers(users=given["min_row_users"], columns=(*(["url"] if clicks else []), *known)))
    claims += clicks[1:] if given["min_row_users"] == clicked else clicks
    if given["time"] != "drop":
        claims.append(TimesRounded(unit=given["time"]))
    if given["min_metadata_users"] is not None:
        known = [name for name in given["metadata"] if name in log.stats.extras]
        if known:  # without such a column there is nothing to promise, and no such column may be in the table
            claims.append(CombinationUsers(users=given["min_metadata_users"], columns=tuple(known)))
    return claims + _linked(given, whole=given["min_row_users"] is None)


_QUERIES = ("equality", "rules", "affinity", "poblete")
"""Methods that choose queries, so that others can follow them in a pipeline."""
_AFTER = (*_QUERIES, "columns", "odp", "search", "mdav")
"""Methods that can follow them."""
_ABOUT_QUERIES = (
    *(QueryUsers, TermUsers, FragmentUsers, QuerySpelling, AllowedQueries, BlockedWords, DecidedQueries),
    *(AffineUsers, ClickedSites, DisjointClicks),
)


def _pipeline(manifest: Manifest, log: QueryLog) -> list[Claim]:
    """What all steps promise, as far as the later ones leave it."""
    steps = list(manifest.steps)
    if steps[0].method == "scrub":
        scrub, done = steps.pop(0).parameters, manifest.scrub
        if done is None:
            raise ValueError("scrub")
        # Countries that were not chosen are those of the language.
        stated = {"how", "kinds", "rare_term_users"} | ({"countries", "decisions"} & set(scrub))
        if scrub != done.model_dump(mode="json", include=stated) or scrub.get("decisions") != done.decisions:
            raise ValueError("scrub")
    elif manifest.scrub is not None and manifest.scrub.decisions is not None:
        raise ValueError("decisions that no step names")
    *first, last = steps
    wrong = [step.method for step in first if step.method not in _QUERIES or not _only_queries(step.parameters)]
    if wrong or (last.method not in _AFTER if first else last.method not in REQUIRED or last.method == "pipeline"):
        raise ValueError("steps")
    if len(manifest.steps) < 2:
        raise ValueError("a pipeline of one step")
    begin, *rest = _STEPS[last.method].claims(manifest.last, log)
    promised: list[Claim] = []
    for place, step in enumerate(first):
        drawn = any(after.method != "columns" or after.parameters["min_row_users"] for after in steps[place + 1 :])
        of_step = manifest.model_copy(update={"method": step.method, "parameters": step.parameters})
        for claim in REQUIRED[step.method].claims(of_step, log):
            if isinstance(claim, AffineUsers) and drawn:
                promised.append(claim.model_copy(update={"drawn": True}))
            elif isinstance(claim, _ABOUT_QUERIES):
                promised.append(claim)
    if first:  # the last step saw only part of the log
        rest = [claim for claim in rest if not isinstance(claim, AllUsers)]
        rest = [one.model_copy(update={"part": True}) if isinstance(one, RecordQueries) else one for one in rest]
    return [begin, *dict.fromkeys(promised), *rest]


def _only_queries(given: Given) -> bool:
    """Whether a step publishes nothing by itself: no links, and no rules about what is beside a query."""
    beside = (given.get("min_row_users"), given.get("min_metadata_users"), given.get("time", "drop"))
    return given["link"] == "none" and beside == (None, None, "drop")


def _rule_columns(given: Given, log: QueryLog) -> list[str]:
    """Columns that rules may release of an event, beside the query and its clicks."""
    known = given["metadata"] if given["min_metadata_users"] is not None else []
    known = [*known, *(["device", "country"] if given["min_row_users"] is not None else [])]
    times = ["time"] if given["time"] != "drop" else []
    return [*times, *dict.fromkeys(name for name in known if name in log.stats.extras)]


def _private_columns(given: Given, log: QueryLog) -> list[str]:
    """The columns of noisy counts; a method without the parameter `counts` always counts."""
    return ["query", *(["url"] if given.get("clicks") else []), *(["count"] if given.get("counts", True) else [])]


class Required(NamedTuple):
    """What a release by some method must consist of and promise."""

    claims: Callable[[Manifest, QueryLog], list[Claim]]
    kind: Kind | None = None
    """None if it is decided by how events are linked."""
    columns: Callable[[Given, QueryLog], list[str]] = lambda given, log: []
    """Further columns of an event; of a table of counts, all columns."""


REQUIRED = {
    "equality": Required(_equality),
    "rules": Required(_rules, columns=_rule_columns),
    "affinity": Required(_affinity),
    "odp": Required(_records),
    "search": Required(_records),
    "mdav": Required(_mdav),
    "clump": Required(_bags, "items"),
    "partition": Required(_bags, "items"),
    "wngen": Required(_wngen, "items"),
    "counts": Required(_counts, "counts", _count_columns),
    "zealous": Required(_zealous, "counts", _private_columns),
    "dp-set": Required(_dp_set, "counts", _private_columns),
    "poblete": Required(_poblete),
    "hash": Required(_hash, "tokens"),
    "pipeline": Required(_pipeline),
}
"""By method. What a method promises is stated twice on purpose: here, and where it makes a release."""

_STEPS = REQUIRED | {"columns": Required(_columns, columns=_rule_columns)}


def _clicks(k: int, log: QueryLog) -> list[Claim]:
    if log.has_views:
        return [ViewUsers(users=k), ViewUsers(users=k, ranks=True), ClickedUsers(users=k)]
    columns = (("url",), ("url", "rank")) if log.has_clicks else ()
    return [RowUsers(users=k, columns=some, clicked=True) for some in columns]


def _tree(manifest: Manifest) -> Given:
    """The tree that items are in: of several taxonomies of that name, the one that is claimed, if it is known here."""
    given = manifest.parameters
    claimed = next((claim.tree for claim in manifest.claims if isinstance(claim, BagUsers | ConceptUsers)), None)
    base = recall_taxonomy(given["taxonomy"], claimed)
    return {"users": given["k"], "taxonomy": given["taxonomy"], "tree": base.digest}


def _linked(given: Given, *, whole: bool = True, items: bool = False) -> list[Claim]:
    """What pseudonyms must promise; nothing where there must be none."""
    if given["link"] not in ("none", "session", "user"):
        raise ValueError(given["link"])
    return [] if given["link"] == "none" else [LinkedEvents(sessions=_sessions(given), whole=whole, items=items)]


def _sessions(given: Given) -> Sessions | None:
    return Sessions(gap=given["session_gap"], events=given["session_events"]) if given["link"] == "session" else None


def _private(manifest: Manifest) -> Claim:
    """The claim of differential privacy that fits the parameters: no epsilon or delta above those asked for.

    Whether its noise and thresholds are worth them is what its own check recomputes.
    """
    given = manifest.parameters
    if manifest.scrub is not None and (manifest.scrub.rare_term_users or manifest.scrub.decisions) is not None:
        raise ValueError("which words are rare, and what is decided, depends on all users together")
    for claim in manifest.claims:
        if isinstance(claim, DifferentialPrivacy):
            asked = (given["epsilon"] or claim.epsilon, given["delta"] or claim.delta)
            noise = {name: given.get(name) for name in ("scale", "threshold") if given.get(name) is not None}
            same = all(getattr(step, name) == value for step in claim.steps for name, value in noise.items())
            if claim.epsilon <= asked[0] and claim.delta <= asked[1] and same and _fits(claim, given):
                return claim
    return DifferentialPrivacy(epsilon=given["epsilon"] or 0, delta=given["delta"] or 0, steps=())


_ZEALOUS = {"max_queries_per_user", "keep", "epsilon", "delta", "threshold", "scale", "min_users", "clicks"}
_DP_SET = {"epsilon", "delta", "max_queries_per_user", "keep", "rounds", "ngrams", "counts"}


def _fits(claim: DifferentialPrivacy, given: Given) -> bool:
    """Whether the steps of a claim count what the parameters ask for."""
    if set(given) != (_ZEALOUS if "min_users" in given else _DP_SET):
        return False
    if (claim.keep, claim.ngrams) != (given["keep"], given.get("ngrams", 0)):
        return False
    kind, rounds = ("laplace", 1) if "min_users" in given else ("gaussian", given["rounds"])
    if any(step.noise != kind for step in claim.steps) or sum(s.of == "queries" for s in claim.steps) != rounds:
        return False
    counted = [step.of for step in claim.steps if step.of != "queries"]
    expected = [*(["n-grams"] if given.get("ngrams") else []), *(["clicks"] if given.get("clicks") else [])]
    expected += ["counts"] if given.get("counts") else []
    first = given.get("min_users")
    return (
        counted == expected
        and all(step.d == given["max_queries_per_user"] for step in claim.steps)
        and all(first is None or step.pre_threshold == first for step in claim.steps)
    )


def expected_kind(manifest: Manifest) -> Kind:
    """What a release by some method with some parameters consists of, stated apart from the methods."""
    by_link: dict[str, Kind] = {"none": "events", "session": "sessions", "user": "records"}
    method, given = manifest.steps[-1]
    return _STEPS[method].kind or by_link[_link(given)]


def _link(given: Given) -> str:
    """How events are linked; methods without this parameter give every user of a group the same record."""
    return str(given.get("link", "user"))


def expected_columns(manifest: Manifest, log: QueryLog) -> list[str]:
    """The columns of a release by some method with some parameters, stated apart from the methods."""
    manifest = manifest.last
    given, kind = manifest.parameters, expected_kind(manifest)
    if kind == "counts":
        return _STEPS[manifest.method].columns(given, log)
    columns = [] if _link(given) == "none" else [_link(given)]
    if kind == "items":
        return [*columns, "item", "node"]
    columns += ["event", "query", *(["users"] if given.get("compact") else [])]
    columns += _STEPS[manifest.method].columns(given, log)
    # Clicks are released only where a claim says how many users made them.
    promised = _STEPS[manifest.method].claims(manifest, log)
    if any(isinstance(claim, ClickedUsers) for claim in promised):
        return [*columns, "rank", "url", "clicked"]
    counted = (claim for claim in promised if isinstance(claim, RowUsers))
    return columns + (["rank", "url"] if any("url" in claim.columns for claim in counted) else [])
