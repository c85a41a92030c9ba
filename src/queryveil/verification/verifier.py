"""The independent checker: is a release what its manifest says, and does every claim hold against the original log?"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims import AffineUsers, Verdict
from queryveil.claims.certificates import Certificate
from queryveil.claims.limits import limits_of
from queryveil.claims.listed import missing_list
from queryveil.claims.lists import stated_list
from queryveil.errors import QueryveilError
from queryveil.log import QueryLog, Scrub
from queryveil.release import Release, counts_of, evidence_of, loaded, made_from, scrub_again
from queryveil.release.manifest import FORMAT_VERSION
from queryveil.scrubbing import Finds, finds, mask, scope_of, url_hits
from queryveil.scrubbing.decisions import Decisions, read_decisions
from queryveil.text.tabular import Tabular, html_list, html_table
from queryveil.verification.file_checks import IN_PARTS, bytes_right, files_unchanged, report_right
from queryveil.verification.languages import doubtful_claims, language_right, other_packages, other_tables, other_words
from queryveil.verification.promises import required_claims
from queryveil.verification.table_checks import columns_right, counts_right, order_right


@dataclass(frozen=True)
class Verification(Tabular):
    """What the verifier found: one verdict for each thing it checked."""

    verdicts: tuple[Verdict, ...]
    unchecked: tuple[str, ...] = ()
    """What could not be checked, a sentence each."""
    other_log: bool = False
    """Whether it failed because the log is not the one that the manifest says, so nothing else was checked. A manifest
    that was changed looks the same, so the release does not hold either."""

    @property
    def holds(self) -> bool:
        """Whether everything that was checked holds."""
        return all(verdict.holds for verdict in self.verdicts)

    @property
    def code(self) -> Literal["refuted", "other-log"] | None:
        """What kind of failure it is, for programs; None if everything that was checked holds."""
        return None if self.holds else "other-log" if self.other_log else "refuted"

    def to_arrow(self) -> pa.Table:
        """One row per verdict."""
        return pa.Table.from_pylist([vars(verdict) for verdict in self.verdicts], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        wrong = sum(not verdict.holds for verdict in self.verdicts)
        title = f"Verification: {wrong} of {len(self.verdicts)} checks failed" if wrong else "Verification: all holds"
        return html_table(title, self.to_arrow()) + html_list("Not checked", self.unchecked)


OTHER_LOG = "this is not the log that the release was made from, or its manifest was changed."
"""What a log means that is not the one of the manifest."""
_SCRUBBED = "The log was scrubbed as the manifest says."
_NOTHING_LEFT = "No released query or address holds anything of the kinds that were scrubbed."
_NOTHING_BUT = f"{_NOTHING_LEFT[:-1]}, but what a reviewer allowed."
_SCHEMA = pa.schema(
    [("claim", pa.string()), ("holds", pa.bool_()), ("counterexample", pa.string()), ("how", pa.string())]
)


def run_checks(release: str | Path | Release, log: QueryLog, *, certificate: Certificate | None = None) -> Verification:
    """Check a release against the log it was made from.

    Args:
        release: The folder of the release, or a release that was loaded or made in this session.
        log: The original log.
        certificate: The certificate of the release, by `load_certificate`; by default that of a release which was made
            in this session. It makes checks quicker and is not trusted.

    Returns:
        The verdicts: files and manifest are as this version writes them; the release was made from this log; the log
        was scrubbed as the manifest says, if at all; claims and limits are exactly those of the method and its
        parameters; columns, ids and order of the table; the numbers; each claim of the manifest; and the report. If one
        of the first is wrong, the rest means nothing and is not checked. Most of all, no claim is run that the method
        does not make. All else is checked against the scrubbed log.

    Raises:
        QueryveilError: If there is no release.
    """
    if not isinstance(release, Release):
        release = Release.load(log.folder(release))
    if certificate is not None:
        release = replace(release, certificate=certificate)
    sound: tuple[Verdict, ...] = ()
    in_parts = release.folder is not None and release.manifest.table not in release.manifest.files
    unchecked = (IN_PARTS,) if in_parts else ()
    # A differentially private release says nothing about its log that could be compared.
    of_log: list[Callable[[], Verdict]] = [] if release.manifest.private else [lambda: _same_log(release, log)]
    checks = [*of_log]
    if (release.manifest.series, log.stats.series) != (None, None):
        checks = [lambda: _in_series(release, log), *checks]
    if release.manifest.counted_on is not None:
        checks.append(lambda: _same_counted(release, log))
    if release.manifest.lists or release.manifest.list_names:
        checks.append(lambda: _same_lists(release, log))
    if release.folder is not None:
        folder = release.folder
        today = [lambda: bytes_right(release, folder)] if release.manifest.format_version == FORMAT_VERSION else []
        checks = [lambda: files_unchanged(release, folder), *today, *checks]
    for check in checks:  # one after the other, because each relies on those before
        sound = (*sound, check())
        if not sound[-1].holds:
            return Verification(sound, other_log=check in of_log)
    words, scrub = other_words(release.manifest, log), other_packages(release.manifest)
    tables = other_tables(release.manifest)
    found = _with_log(release, log)
    # Only what depends on the other versions is in doubt: a forger may name any version.
    doubtful = {_SCRUBBED, _NOTHING_LEFT, _NOTHING_BUT} if words or scrub else set()
    doubtful |= doubtful_claims(release.manifest, words)
    wrong = [verdict.claim for verdict in found if not verdict.holds]
    if wrong and set(wrong) <= doubtful:
        raise QueryveilError(f"The release cannot be checked here, because {words or scrub or tables}.")
    unchecked = unchecked if words is None else (*unchecked, f"Words may differ, because {words}.")
    unchecked = unchecked if scrub is None else (*unchecked, f"Scrubbing may differ, because {scrub}.")
    unchecked = unchecked if tables is None else (*unchecked, f"Similar queries may differ, because {tables}.")
    return Verification((*sound, *found), unchecked)


def _with_log(release: Release, log: QueryLog) -> tuple[Verdict, ...]:
    """Everything that is checked against the log, or against the log scrubbed as the manifest says."""
    if release.manifest.scrub is None and log.stats.scrub is None:
        return _checked(release, log)
    scrubbed, verdict = _scrubbed(release, log)
    if scrubbed is None:
        return (verdict,)
    try:
        return (verdict, _nothing_left(release, scrubbed), *_checked(release, scrubbed))
    finally:
        if scrubbed is not log:
            scrubbed.close()


def _checked(release: Release, log: QueryLog) -> tuple[Verdict, ...]:
    """Everything that is checked once the log is known to be the right one."""
    # A claim that the method does not make must not run: its fields may come from anybody.
    first: tuple[Verdict, ...] = ()
    checks = (language_right, _promises_kept, lambda release, log: limits_right(release), columns_right)
    for check in checks:  # each relies on those before
        verdict = check(release, log)
        first = first if verdict is None else (*first, verdict)
        if verdict is not None and not verdict.holds:
            return first
    with evidence_of(release, log, release.certificate) as evidence:
        claims = tuple(claim.verdict(evidence) for claim in release.manifest.claims)
        found = (*first, order_right(release, evidence), counts_right(release, evidence), *claims)
    if release.manifest.format_version != FORMAT_VERSION:
        # Otherwise a forger would say that their release is of 0.1, for which less can be checked.
        return (*found, Verdict("The release can be checked in full.", False, "version 0.1 made it, or so it says"))
    if release.folder is None or not all(verdict.holds for verdict in found):
        return found
    return (*found, report_right(release, release.folder, claims))


def _scrubbed(release: Release, log: QueryLog) -> tuple[QueryLog | None, Verdict]:
    """The log scrubbed as the manifest says; None if the number of hits is not what the manifest says."""
    claim = _SCRUBBED
    stated = release.manifest.scrub
    if stated is None:
        return None, Verdict(claim, False, "the release is of the whole log, and the log given is a scrubbed one")
    private, earlier = release.manifest.private, release.manifest.format_version == 1
    if earlier and stated.how == "mask":
        raise QueryveilError(
            "Version 0.1 released queries with nothing but masks, and this version leaves them out, so it cannot check"
            " this release; use queryveil 0.1."
        )

    def as_stated(found: Scrub) -> Scrub:
        found = (found.without_counts if private else found).model_copy(update={"packages": stated.packages})
        return found.model_copy(update={"left_out": stated.left_out, "log": stated.log}) if earlier else found

    if log.stats.scrub is not None:
        same = as_stated(log.stats.scrub) == stated
        return (log if same else None), Verdict(claim, same, None if same else "the log given was scrubbed otherwise")
    try:
        scrubbed = scrub_again(release, log)
    except QueryveilError:
        return None, Verdict(claim, False, "the log cannot be scrubbed so")
    found = scrubbed.stats.scrub
    if found is not None and as_stated(found) == stated:
        return scrubbed, Verdict(claim, True)
    scrubbed.close()
    return None, Verdict(claim, False, "scrubbing the log finds other numbers of hits")


def _nothing_left(release: Release, log: QueryLog) -> Verdict:
    """Search the released texts themselves for what was scrubbed, whatever the method promises about them."""
    claim = _NOTHING_LEFT
    stated = release.manifest.scrub
    if stated is not None and stated.decisions is not None:
        claim = _NOTHING_BUT
    if (
        stated is None or release.manifest.kind == "tokens"
    ):  # tokens may look like numbers of any kind, and stand beside no address
        return Verdict(claim, True)
    hits = pa.schema([("hits", pa.int64())])
    kinds, scope = stated.kinds, scope_of(log.language, stated.countries)

    decided = None if stated.decisions is None else Decisions.of(read_decisions(release.lists[stated.decisions]))
    allowed = set() if decided is None else set(decided.allowed_queries.to_pylist())
    phrases = set() if decided is None else set(decided.allowed_words.to_pylist())

    def in_queries(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = pa.array(mask(batch["query"], kinds, scope).hits)
        if decided is not None:
            there = batch["query"].filter(pc.greater(found, 0)).to_pylist()
            left = (query for query in there if query not in allowed)
            found = pa.array([int(not _allowed(finds(query, kinds, scope), phrases)) for query in left], pa.int64())
        return pa.RecordBatch.from_arrays([found], schema=hits)

    def in_urls(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(url_hits(batch["url"], kinds, scope))], schema=hits)

    looks = (("query", "queries", in_queries), ("url", "addresses", in_urls))
    with loaded(release, log) as released, log.workspace() as work:
        for column, what, look in looks:
            if column not in release.schema.names:
                continue
            asked = f"SELECT {column} FROM {released} WHERE {column} IS NOT NULL GROUP BY {column}"  # noqa: S608  # parts of this module
            made = work.map(asked, look, hits, f"hits in {what}")
            (wrong,) = work.row(f"SELECT count(*) AS n FROM {made} WHERE hits > 0")  # noqa: S608  # a table of ours
            if wrong:
                return Verdict(claim, False, f"{wrong} of its distinct {what} do")
    return Verdict(claim, True)


def _allowed(found: Finds, phrases: set[str]) -> bool:
    """Whether each find, with what stands around it up to the next blanks, is in a row of words that is allowed."""
    words = found.text.split(" ")
    most = max((phrase.count(" ") + 1 for phrase in phrases), default=0)
    for start, end in found.spans:
        first, last = found.text[:start].count(" "), found.text[:end].count(" ")
        rows = ((a, b) for a in range(max(last - most + 1, 0), first + 1) for b in range(last + 1, a + most + 1))
        if not any(" ".join(words[a:b]) in phrases for a, b in rows):
            return False
    return True


def _promises_kept(release: Release, log: QueryLog) -> Verdict:
    claim = "The manifest claims what its method and parameters promise, and nothing else."
    try:
        required = required_claims(release.manifest, log)
    except (KeyError, TypeError, ValueError):
        return Verdict(claim, False, f"the parameters are not those of the method '{release.manifest.method}'")
    stated = release.manifest.claims
    missing = next((one for one in required if one not in stated), None)
    if missing is not None:
        return Verdict(claim, False, f"it does not claim: {missing.statement}")
    if tuple(required) != stated:
        return Verdict(claim, False, f"it makes {len(stated)} claims in another order, not these {len(required)}")
    return Verdict(claim, True)


def limits_right(release: Release) -> Verdict:
    """Whether the manifest has the limits of its method."""
    claim = "The manifest says what its method does not promise, and nothing else."
    manifest = release.manifest
    drawn = any(isinstance(claim, AffineUsers) and claim.drawn for claim in manifest.claims)
    required, stated = limits_of([step.method for step in manifest.steps], drawn=drawn), manifest.limits
    missing = next((limit for limit in required if limit not in stated), None)
    if missing is not None:
        return Verdict(claim, False, f"it does not say: {missing}")
    return Verdict(claim, required == stated, None if required == stated else "it says more than that")


def _in_series(release: Release, log: QueryLog) -> Verdict:
    claim = "The release is at its place in its series."
    stated, found = release.manifest.series, log.stats.series
    if stated is not None and found is None:
        whole = f"it is release {stated.number} of a series; check all of it with 'queryveil series verify'"
        return Verdict(claim, False, whole)
    if stated is None or found is None:
        return Verdict(claim, False, "its manifest does not say that it is part of a series")
    wrong = next((name for name in type(found).model_fields if getattr(stated, name) != getattr(found, name)), None)
    return Verdict(claim, wrong is None, wrong and f"'{wrong}' in 'series' of its manifest is not right")


def _same_counted(release: Release, log: QueryLog) -> Verdict:
    """Whether users of fragments were counted on the log that is given for that, and a rule asks for it."""
    claim = "The users of fragments were counted on the other log that is given."
    stated, steps = release.manifest.counted_on, release.manifest.steps
    if not any(step.parameters.get("min_fragment_users") for step in steps):
        return Verdict(claim, False, "no rule counts users of fragments")
    if log.counted is log or stated is None:
        return Verdict(claim, False, "it is not given")
    if stated.counts != counts_of(log.counted):
        return Verdict(claim, False, "its counts of that log are wrong")
    if release.seed is None:
        return Verdict(claim, True, how="compared by its size, because the seed is not known")
    same = hmac.compare_digest(stated.fingerprint, log.counted.keyed_fingerprint(release.seed))
    return Verdict(claim, same, None if same else "the fingerprints differ")


def _same_lists(release: Release, log: QueryLog) -> Verdict:
    """Whether the lists that are given are those that the release was made with."""
    claim = "The lists are those that the release was made with."
    stated = release.manifest.lists
    if set(stated) != release.manifest.list_names:
        return Verdict(claim, False, "its manifest does not say how long the lists are that its parameters name")
    for name, one in stated.items():
        if name not in release.lists:
            raise missing_list(name)
        # Without the seed there is no digest to compare, and any will do.
        found = stated_list(release.lists[name], log, release.seed or 0)
        if found.entries != one.entries:
            return Verdict(claim, False, f"'{name}' has {found.entries:,} entries, and had {one.entries:,}")
        if release.seed is not None and not hmac.compare_digest(found.digest, one.digest):
            return Verdict(claim, False, f"'{name}' has other entries than it had")
    how = "compared by their length; with the certificate, also by their entries" if release.seed is None else None
    return Verdict(claim, True, how=how)


def _same_log(release: Release, log: QueryLog) -> Verdict:
    same = made_from(release, log)
    if release.seed is None or release.manifest.input_fingerprint is None:
        claim = "The size of the log is as the manifest says."
        return Verdict(claim, same, None if same else "its counts of the log are wrong")
    claim = "The release was made from this log."
    return Verdict(claim, same, None if same else "the fingerprints differ; is the certificate that of this release?")
