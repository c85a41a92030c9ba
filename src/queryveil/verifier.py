"""The independent checker: is a release what its manifest says, and does every claim hold against the original log?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.bands import bands
from queryveil.certificates import Certificate
from queryveil.claims import (
    AffineUsers,
    AllUsers,
    BagUsers,
    Claim,
    ClickedSites,
    CombinationUsers,
    ConceptUsers,
    DifferentialPrivacy,
    DisjointClicks,
    HashedWords,
    IssuedQueries,
    LinkedEvents,
    PartOfLog,
    QuerySpelling,
    QueryUsers,
    RecordQueries,
    RecordUsers,
    RowUsers,
    Sessions,
    TermUsers,
    TimesRounded,
    Verdict,
)
from queryveil.claims.generalized import tree_digest
from queryveil.errors import QueryveilError
from queryveil.files import Folder
from queryveil.kernels.digest import digests
from queryveil.knowledge import recall_knowledge
from queryveil.limits import LIMITS
from queryveil.log import LocalLog, QueryLog, Scrub
from queryveil.manifest import FORMAT_VERSION, NOT_TOLD, Manifest
from queryveil.release import MANIFEST, REPORT, Release, check_claims, counts_of, loaded
from queryveil.scrubbing import mask, repeat_scrub, url_hits
from queryveil.summary import is_private, markdown
from queryveil.text.arrays import byte_spans


@dataclass(frozen=True)
class Verification:
    """What the verifier found: one verdict for each thing it checked."""

    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether everything holds."""
        return all(verdict.holds for verdict in self.verdicts)


def verify(release: str | Path | Release, log: QueryLog, *, certificate: Certificate | None = None) -> Verification:
    """Check a release against the log it was made from.

    Args:
        release: The release directory, or a release that was loaded or made in this session.
        log: The original log.
        certificate: What the method handed over with its release, by `load_certificate`; by default that of a release
            which was made in this session. It makes checks quicker and is not believed.

    Returns:
        The verdicts: files unchanged, made from this log, scrubbed as the manifest says if at all, claims that fit the
        method and its parameters, limits that fit the method, no further column, numbers right, each claim of the
        manifest, and the report. Where the files, the log or its scrubbing are not the right ones, the rest means
        nothing and is not looked at. All else is checked against the scrubbed log.

    Raises:
        QueryveilError: If there is no release to be checked.
    """
    if not isinstance(release, Release):
        release = Release.load(log.folder(release))
    certificate = certificate or release.certificate
    sound = (*([] if release.folder is None else [_files_unchanged(release, release.folder)]), _same_log(release, log))
    if not all(verdict.holds for verdict in sound):
        return Verification(sound)
    if release.manifest.scrub is None and log.facts.scrub is None:
        return Verification((*sound, *_checked(release, log, certificate)))
    scrubbed, verdict = _scrubbed(release, log)
    if scrubbed is None:
        return Verification((*sound, verdict))
    try:
        checked = _checked(release, scrubbed, certificate)
        return Verification((*sound, verdict, _nothing_left(release, scrubbed), *checked))
    finally:
        if scrubbed is not log:
            scrubbed.close()


def _checked(release: Release, log: QueryLog, certificate: Certificate | None) -> tuple[Verdict, ...]:
    """Everything that is checked once the log is known to be the right one."""
    claims = check_claims(release, log, certificate)
    # The report of an earlier format is in the words of its version, which nobody can repeat.
    compared = release.folder is not None and release.manifest.format_version == FORMAT_VERSION
    told = [_report_right(release, release.folder, claims)] if compared and release.folder is not None else []
    return (
        _promises_kept(release, log),
        _limits_told(release),
        _columns_allowed(release, log),
        _counts_right(release, log),
        *claims,
        *told,
    )


def _scrubbed(release: Release, log: QueryLog) -> tuple[QueryLog | None, Verdict]:
    """The log scrubbed as the manifest says, which must find as much as the manifest says; None if it does not."""
    claim = "The log was scrubbed as the manifest says."
    stated = release.manifest.scrub
    if stated is None:
        return None, Verdict(claim, False, "the release is of the whole log, and the log given is a scrubbed one")
    private, earlier = is_private(release.manifest), release.manifest.format_version == 1
    if earlier and stated.how == "mask":
        raise QueryveilError(
            "Version 0.1 released queries of which only masks were left, and this version leaves them out, so it cannot"
            " check this release; use queryveil 0.1."
        )

    def as_stated(found: Scrub) -> Scrub:
        found = found.untold if private else found
        return found.model_copy(update={"left_out": stated.left_out, "log": stated.log}) if earlier else found

    if log.facts.scrub is not None:
        same = as_stated(log.facts.scrub) == stated
        return (log if same else None), Verdict(claim, same, None if same else "the log given was scrubbed otherwise")
    try:
        scrubbed = repeat_scrub(log, stated)
    except QueryveilError:
        return None, Verdict(claim, False, "the log cannot be scrubbed so")
    found = scrubbed.facts.scrub
    if found is not None and as_stated(found) == stated:
        return scrubbed, Verdict(claim, True)
    scrubbed.close()
    return None, Verdict(claim, False, "scrubbing the log finds other numbers of hits")


def _nothing_left(release: Release, log: QueryLog) -> Verdict:
    """Look for what was scrubbed in the released texts themselves, whatever the method promises of them."""
    claim = "No released query or address holds anything of the kinds that were scrubbed."
    stated = release.manifest.scrub
    hashed = any(isinstance(promise, HashedWords) for promise in release.manifest.claims)
    if stated is None or hashed:  # tokens may look like numbers of any kind, and stand beside no address
        return Verdict(claim, True)
    hits = pa.schema([("hits", pa.int64())])
    kinds = stated.kinds

    def in_queries(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(mask(batch["query"], kinds).hits)], schema=hits)

    def in_urls(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(url_hits(batch["url"], kinds))], schema=hits)

    looks = (("query", "queries", in_queries), ("url", "addresses", in_urls))
    with loaded(release, log):
        for column, what, look in looks:
            if column not in release.schema.names:
                continue
            asked = f"SELECT {column} FROM released WHERE {column} IS NOT NULL GROUP BY {column}"
            log.engine.map(asked, look, hits, "released hits")
            (wrong,) = log.engine.row('SELECT count(*) AS n FROM "released hits" WHERE hits > 0')
            log.engine.drop("released hits")
            if wrong:
                return Verdict(claim, False, f"{wrong} of its distinct {what} do")
    return Verdict(claim, True)


def _promises_kept(release: Release, log: QueryLog) -> Verdict:
    claim = "The manifest claims all that its method and parameters promise."
    try:
        required = required_claims(release.manifest, log)
    except (KeyError, TypeError, ValueError):
        return Verdict(claim, False, f"the parameters are not those of the method '{release.manifest.method}'")
    missing = next((wanted for wanted in required if wanted not in release.manifest.claims), None)
    return Verdict(claim, missing is None, f"it does not claim: {missing.statement}" if missing is not None else None)


def _limits_told(release: Release) -> Verdict:
    claim = "The manifest says all that its method does not promise."
    missing = next(
        (said for said in LIMITS.get(release.manifest.method, ()) if said not in release.manifest.limits), None
    )
    return Verdict(claim, missing is None, missing and f"it does not say: {missing}")


def required_claims(manifest: Manifest, log: QueryLog) -> list[Claim]:
    """What a release by some method with some parameters must promise, stated apart from the methods."""
    given = manifest.parameters
    claims: list[Claim] = [PartOfLog()]
    has_clicks = log.has_clicks
    if manifest.method in ("equality", "affinity"):
        k = given["k"]
        if manifest.method == "equality":
            claims.append(QueryUsers(users=k))
        else:
            least = {
                "concept_min_users": given["concept_min_users"] or max(5, round(0.0001 * log.n_users)),
                "min_term_users": given["min_term_users"] or k,
            }
            same = {name: given[name] for name in ("theta", "vectors", "min_query_users", "max_new_users")}
            claims.append(AffineUsers(users=k, **least, **same))
        if has_clicks:
            claims += [RowUsers(users=k, columns=columns, clicked=True) for columns in (("url",), ("url", "rank"))]
        return claims + _linked(given)
    if manifest.method == "mdav" and given["distance"] == "semantic":
        return [IssuedQueries(), RecordUsers(users=given["k"], compact=given["compact"])]
    if manifest.method in ("odp", "search", "mdav"):
        compact = given["compact"]
        k = given["k"]
        shared = [RecordUsers(users=k, compact=compact), RecordQueries(users=k, compact=compact)]
        return [IssuedQueries(), *shared, AllUsers(compact=compact)]
    if manifest.method in ("clump", "partition", "wngen"):
        base = recall_knowledge(given["knowledge"])
        common = {"users": given["k"], "knowledge": given["knowledge"], "tree": tree_digest(base)}
        if manifest.method == "wngen":
            return [ConceptUsers(**common), *_linked(given, items=True)]
        return [BagUsers(**common, duplicates=given.get("duplicates", False))]
    if manifest.method in ("zealous", "dp-set"):
        first = (
            [QueryUsers(users=given["min_users"])] if manifest.method == "zealous" and given["min_users"] > 1 else []
        )
        return [IssuedQueries(), *first, _private(manifest)]
    if manifest.method == "hash":
        return [HashedWords(sessions=_sessions(given))]
    if manifest.method == "poblete":
        return [*claims, ClickedSites(documents=given["k"], sites=given["sites"]), DisjointClicks(), *_linked(given)]
    if manifest.method != "rules":
        raise ValueError(manifest.method)
    if given["min_query_users"] is not None:
        claims.append(QueryUsers(users=given["min_query_users"]))
    if given["min_row_users"] is not None:
        known = [name for name in ("device", "country") if name in log.facts.extras]
        columns = (*(["url"] if has_clicks else []), *known)
        claims.append(RowUsers(users=given["min_row_users"], columns=columns))
        if has_clicks:
            claims.append(RowUsers(users=given["min_row_users"], columns=("url", "rank"), clicked=True))
    if given["min_term_users"] is not None:
        claims.append(TermUsers(users=given["min_term_users"]))
    spelling = QuerySpelling(**{name: given[name] for name in ("max_characters", "max_terms", "no_digits", "no_at")})
    if spelling != QuerySpelling():
        claims.append(spelling)
    if given["time"] != "drop":
        claims.append(TimesRounded(unit=given["time"]))
    if given["min_metadata_users"] is not None:
        known = [name for name in given["metadata"] if name in log.facts.extras]
        if known:  # without such a column there is nothing to promise, and no such column may be in the table
            claims.append(CombinationUsers(users=given["min_metadata_users"], columns=tuple(known)))
    return claims + _linked(given, whole=given["min_row_users"] is None)


def _linked(given: dict[str, Any], *, whole: bool = True, items: bool = False) -> list[Claim]:
    """What pseudonyms must promise; nothing where there must be none."""
    if given["link"] not in ("none", "session", "user"):
        raise ValueError(given["link"])
    return [] if given["link"] == "none" else [LinkedEvents(sessions=_sessions(given), whole=whole, items=items)]


def _sessions(given: dict[str, Any]) -> Sessions | None:
    return Sessions(gap=given["session_gap"], events=given["session_events"]) if given["link"] == "session" else None


def _private(manifest: Manifest) -> Claim:
    """The claim of differential privacy that fits the parameters: no epsilon or delta above those asked for.

    Whether its noise and thresholds are worth them is what its own check recomputes.
    """
    given = manifest.parameters
    for claim in manifest.claims:
        if isinstance(claim, DifferentialPrivacy):
            asked = (given["epsilon"] or claim.epsilon, given["delta"] or claim.delta)
            noise = {name: given.get(name) for name in ("scale", "threshold") if given.get(name) is not None}
            same = all(getattr(step, name) == value for step in claim.steps for name, value in noise.items())
            if claim.epsilon <= asked[0] and claim.delta <= asked[1] and same and _fits(claim, given):
                return claim
    return DifferentialPrivacy(epsilon=given["epsilon"] or 0, delta=given["delta"] or 0, steps=())


_ZEALOUS = {"d", "keep", "epsilon", "delta", "threshold", "scale", "min_users", "clicks"}
_DP_SET = {"epsilon", "delta", "d", "keep", "rounds", "ngrams", "counts"}


def _fits(claim: DifferentialPrivacy, given: dict[str, Any]) -> bool:
    """Whether the steps of a claim count what the parameters ask for."""
    if set(given) != (_ZEALOUS if "min_users" in given else _DP_SET):
        return False
    if given["keep"] not in ("first", "random", "frequent"):
        return False
    kind, rounds = ("laplace", 1) if "min_users" in given else ("gaussian", given["rounds"])
    if any(step.noise != kind for step in claim.steps) or sum(s.of == "queries" for s in claim.steps) != rounds:
        return False
    counted = [step.of for step in claim.steps if step.of != "queries"]
    wanted = [*(["n-grams"] if given.get("ngrams") else []), *(["clicks"] if given.get("clicks") else [])]
    wanted += ["counts"] if given.get("counts") else []
    first = given.get("min_users")
    return (
        counted == wanted
        and all(step.d == given["d"] for step in claim.steps)
        and all(first is None or step.first == first for step in claim.steps)
    )


def _columns_allowed(release: Release, log: QueryLog) -> Verdict:
    claim = "The table has no column but those that the claims cover, and its order says nothing."
    allowed = {"event", "query", "rank", "url"}
    for promise in release.manifest.claims:
        if isinstance(promise, BagUsers | ConceptUsers):
            allowed = {"item", "node"}
        if isinstance(promise, DifferentialPrivacy):
            allowed = {"query", "url", "count"}
    # Methods without this parameter give every user of a group the same record, or publish no events.
    linked = release.manifest.parameters.get("link", "none" if is_private(release.manifest) else "user")
    if linked != "none":
        allowed.add(linked)
    for promise in release.manifest.claims:
        if isinstance(promise, RowUsers | CombinationUsers):
            allowed |= set(promise.columns)
        if isinstance(promise, RecordUsers) and promise.compact:
            allowed.add("users")
        if isinstance(promise, TimesRounded):
            allowed.add("time")
    wrong = next((name for name in release.schema.names if name not in allowed), None)
    if wrong == "time":  # AOL's format has a place for times in any case; it must be empty
        with loaded(release, log):
            wrong = "time" if log.engine.row("SELECT count(time) FROM released")[0] else None
    if wrong is not None:
        return Verdict(claim, False, f"the column '{wrong}'")
    row = _out_of_order(release) if isinstance(log, LocalLog) else None
    found = None if row is None else f"row {row} does not stand in the order of pseudonyms and texts"
    return Verdict(claim, row is None, found)


def _out_of_order(release: Release) -> int | None:
    """The first row that does not follow from the one before by pseudonym, text and number of the event.

    Texts are in the order of their digests, so that the order of rows gives away neither users nor times. On a cluster
    rows are not brought here, and the claims look at the numbers of events alone.
    """
    names = release.schema.names
    ids = [name for name in ("user", "session") if name in names]
    hashed = any(isinstance(claim, HashedWords) for claim in release.manifest.claims)
    before: NDArray[np.int64] | None = None
    seen = 0
    for batch in release.batches():
        keys = [batch[name].to_numpy().astype(np.int64) for name in ids]
        if "node" in names:
            keys.append(batch["node"].to_numpy().astype(np.int64))
        else:
            halves = digests(*byte_spans(batch["query"].cast(pa.string())))
            sign = np.uint64(0 if hashed else 1 << 63)  # as signed numbers; tokens are numbered by signed digests
            keys += [(half ^ sign).view(np.int64) for half in halves]
        if "event" in names:
            keys.append(batch["event"].to_numpy().astype(np.int64))
        rows = np.stack(keys, axis=1)
        rows = rows if before is None else np.concatenate([before, rows])
        later = np.zeros(max(len(rows) - 1, 0), np.bool_)
        for key in rows.T[::-1]:
            later = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & later)
        same = (rows[1:] == rows[:-1]).all(axis=1)
        wrong = np.flatnonzero(~later & ~same)
        if len(wrong):
            return seen + int(wrong[0]) + (2 if before is None else 1)
        seen += len(batch)
        before = rows[-1:] if len(rows) else before
    return None


def _report_right(release: Release, place: Folder, claims: tuple[Verdict, ...]) -> Verdict:
    same = place.read(REPORT).decode("utf-8", "replace") == markdown(release.manifest, claims)
    claim = "The report says what the manifest and the checks say."
    return Verdict(claim, same, None if same else f"{REPORT} reads otherwise")


def _files_unchanged(release: Release, place: Folder) -> Verdict:
    claim = "The files are those that the manifest names, unchanged."
    listed = release.manifest.files
    for name in sorted({release.manifest.table, REPORT} - {name.split("/")[0] for name in listed}):
        return Verdict(claim, False, f"{name} has no SHA-256 in the manifest")
    present = set(place.files()) - {MANIFEST}
    for name in sorted(present ^ set(listed)):
        return Verdict(claim, False, f"{name} is {'not in the manifest' if name in present else 'missing'}")
    found = place.sha256()
    changed = next((name for name in sorted(listed) if found[name] != listed[name]), None)
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def _same_log(release: Release, log: QueryLog) -> Verdict:
    same = release.manifest.input_fingerprint == log.fingerprint
    return Verdict(
        "The release was made from this log.", same, None if same else "the fingerprints of the two logs differ"
    )


def _counts_right(release: Release, log: QueryLog) -> Verdict:
    columns = release.schema.names
    private = is_private(release.manifest)
    count = {
        "rows": "count(*)",
        "events": "count(DISTINCT event)" if "event" in columns else _events_of_counts(columns) if private else None,
        "users": 'count(DISTINCT "user")' if "user" in columns else None,
        "sessions": "count(DISTINCT session)" if "session" in columns else None,
        "queries": "count(DISTINCT node)" if "node" in columns else "count(DISTINCT query)",
        "clicks": "count(url)" if "url" in columns else None,
    }
    asked = {name: sql for name, sql in count.items() if sql is not None}
    with loaded(release, log):
        counted = ", ".join(f"{sql} AS {name}" for name, sql in asked.items())
        found = log.engine.row(f"SELECT {counted} FROM released")
        kept = log.frequencies(
            f"SELECT q.query_id AS query_id, {count['events'] or 'count(*)'} AS n FROM released r"
            " JOIN queries q ON q.query = r.query GROUP BY q.query_id"
            if "query" in columns
            else None
        )
    claim = "The manifest counts right."
    for name, number in zip(asked, found, strict=True):
        stated = getattr(release.manifest.counts, name)
        if stated != number:
            return Verdict(claim, False, f"it says {stated} {name}, the table has {number}")
    counts = release.manifest.counts
    if "node" in columns and (counts.events, counts.clicks) != (counts.rows, 0):
        return Verdict(claim, False, "it says otherwise how many items and clicks there are")
    if "node" in columns and release.manifest.bands != bands(kept):
        return Verdict(claim, False, "its frequency bands are not those of the log")
    if release.manifest.input_counts != (NOT_TOLD if private else counts_of(log)):
        return Verdict(claim, False, "it counts the log otherwise than the log is")
    if count["events"] is not None and release.manifest.bands != (() if private else bands(kept)):
        return Verdict(claim, False, "its frequency bands are not those of the table")
    return Verdict(claim, True)


def _events_of_counts(columns: list[str]) -> str:
    """SQL of what counts as events where noisy counts are published, or queries alone."""
    each = '"count"' if "count" in columns else "1"
    plain = f"CASE WHEN url IS NULL THEN {each} ELSE 0 END" if "url" in columns else each
    return f"coalesce(CAST(sum({plain}) AS BIGINT), 0)"
