"""Everything that can be checked about a release: the verifier's checks, and the release made again from its log."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.claims import Verdict
from queryveil.claims.certificates import Certificate, load_certificate
from queryveil.errors import QueryveilError, option
from queryveil.formats import writers
from queryveil.kernels.close import has_cuda
from queryveil.knowledge import known_taxonomies
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.log.draws import keyed
from queryveil.methods import STEPS, Counts, Method, Pipeline, Scrub
from queryveil.methods.private.common import PrivateMethod
from queryveil.release import Release, scrub_again
from queryveil.release.linkage import Linkage
from queryveil.release.manifest import Manifest, Stage, located
from queryveil.release.release import by_name
from queryveil.text.arrays import byte_spans
from queryveil.verification import verifier
from queryveil.verification.languages import other_packages, other_tables, other_words
from queryveil.verification.verifier import Verification

Hashes = NDArray[np.uint64]
_PEOPLE = 100
"""With fewer people linkage is not compared without the seed: it depends too much on what is known about each."""
_KEYED = ("input_fingerprint", "counted_on", "lists")
"""Fields of a manifest with digests that only the seed can repeat."""
_PARAMETERS = "The parameters, and noise if there is any, are those of the method."
_CLAIM = "Made again from the log and the parameters, the release is the same"


def verify(
    release: str | Path | Release,
    log: QueryLog,
    *,
    certificate: str | Path | Certificate | None = None,
    lists: Sequence[str | Path] = (),
    rebuild: bool | None = None,
    counted_on: QueryLog | None = None,
) -> Verification:
    """Check a release against the log it was made from, and make it again.

    Args:
        release: The folder of the release, or a release that was loaded or made in this session.
        log: The original log.
        certificate: The certificate of the release, or its file; by default that of a release which was made in this
            session. It makes checks quicker and is not trusted; its seed reveals the fingerprint.
        lists: The lists that it was made with, which a release names but does not contain; by default those that a
            release which was made or loaded in this session knows.
        rebuild: Whether to make the release again and compare the two. With its seed they must be the same byte for
            byte; without it, pseudonyms and the order of equal events may differ. By default this is done, if it is
            possible, for a release that was loaded and a log on this machine.
        counted_on: The log on which users of fragments were counted, if the release says that this is another one; by
            default that of `log.counted_on`, or the one that a release which was made in this session knows.

    Returns:
        The verdicts of the verifier, and what was not checked.

    Raises:
        QueryveilError: If there is no release, `rebuild` is True and it cannot be made again, or it was made with a log
            or a list that is not given.
    """
    check_is_log(log, "verify")
    loaded = release if isinstance(release, Release) else Release.load(log.folder(release))
    if certificate is not None:
        seen = certificate if isinstance(certificate, Certificate) else load_certificate(certificate)
        loaded = replace(loaded, certificate=seen)
    if lists:
        loaded = replace(loaded, lists=by_name(lists))
        unused = next((name for name in loaded.lists if name not in loaded.manifest.list_names), None)
        if unused is not None:  # else somebody who left the list out would seem to have kept it
            raise QueryveilError(
                f"The release was made without a list '{unused}', so it may hold what is blocked there; leave it out of"
                f" {option('list', python='lists')} to check the rest."
            )
    log = _counting(loaded, log, counted_on)
    found = verifier.run_checks(loaded, log)
    if not found.holds or loaded.folder is None:  # making a new release again would give the same
        return found
    methods = _methods(loaded.manifest, loaded.lists)
    wrong = None if methods else f"this version of {loaded.manifest.method} takes others"
    found = replace(found, verdicts=(*found.verdicts, Verdict(_PARAMETERS, wrong is None, wrong)))
    if not methods or rebuild is False:
        return found
    manifest = loaded.manifest
    why = (
        other_words(manifest, log) or other_packages(manifest) or other_tables(manifest) or _cannot(loaded, methods[0])
    )
    if why is None and rebuild is None and not isinstance(log, LocalLog):
        why = f"its log is on a cluster; {option('rebuild', True)} does so"
    if why is None:
        return replace(found, verdicts=(*found.verdicts, _made_again(loaded, log, methods)))
    if rebuild:
        raise QueryveilError(f"The release cannot be made again, because {why}; leave {option('rebuild', True)} out.")
    return replace(found, unchecked=(*found.unchecked, f"The release was not made again, because {why}."))


def _counting(release: Release, log: QueryLog, counted_on: QueryLog | None) -> QueryLog:
    """The log together with the one on which users of fragments were counted, which must be given if there is one."""
    known = (one.counted for one in (log, release.log) if one is not None and one.counted is not one)
    counted_on = next(known, None) if counted_on is None else counted_on
    if counted_on is None and release.manifest.counted_on is not None:
        raise QueryveilError(
            "The users of fragments were counted on another log than the one released; give that log as well, with"
            f" {option('counted_on')}."
        )
    if counted_on is not None and release.manifest.counted_on is None:
        raise QueryveilError(f"The release counted no users on another log; leave {option('counted_on')} out.")
    return log if counted_on is None else log.counted_on(counted_on)


def _methods(manifest: Manifest, lists: Mapping[str, Path]) -> list[Method]:
    """The method of a release, if it accepts exactly the parameters in the manifest.

    A manifest has only the name of a taxonomy, so there is one method for each that is known by this name.
    """
    try:
        of_each = [_known_as(step, lists) for step in manifest.steps]
        methods = [Pipeline(steps) for steps in product(*of_each)] if manifest.method == Pipeline.name else of_each[0]
    except (KeyError, QueryveilError, TypeError):
        return []
    return [method for method in methods if _makes(method, manifest)]


def _known_as(step: Stage, lists: Mapping[str, Path]) -> list[Method]:
    """The methods that a step of a manifest may stand for."""
    given = located(step.parameters, lists)
    named = given.get("taxonomy")
    of_each = [{}] if named in (None, "wordnet") else [{"taxonomy": one.source} for one in known_taxonomies(str(named))]
    return [STEPS[step.method](**given | taxonomy) for taxonomy in of_each]


def _makes(method: Method, manifest: Manifest) -> bool:
    same = json.dumps(method.parameters()) == json.dumps(manifest.parameters)
    # The verifier knows what privacy noise and thresholds give, but only the method which of them it would choose.
    stated = method.last.claim if isinstance(method.last, PrivateMethod | Counts) and method.last.private else None
    return same and (stated is None or stated == manifest.claims[-1])


def _cannot(release: Release, method: Method) -> str | None:
    """Why a release cannot be made again."""
    if any(step.parameters.get("device") == "cuda" for step in release.manifest.steps) and not has_cuda():
        return "its queries were compared on a graphics processor, and there is none here"
    if method.repeats == "never":
        return f"{method.last.name} uses random noise or a random key that was not kept"
    if method.repeats == "seed" and release.seed is None:
        return (
            "that needs its seed, which only its certificate has; so a record may have more queries of one of its users"
            " than of the others, up to all that they issued"
        )
    return None


def _made_again(release: Release, log: QueryLog, methods: list[Method]) -> Verdict:
    """Whether one of the methods makes the release."""
    manifest = release.manifest
    scrubs, scrubbed = manifest.steps[0].method == Scrub.name, log
    if scrubs and log.stats.scrub is not None and log.part is not None:
        log = scrubbed = log.part.of  # its first step scrubs
    elif not scrubs and manifest.scrub is not None and log.stats.scrub is None:
        scrubbed = scrub_again(release, log)
    exact = release.seed is not None
    same = "byte for byte" if manifest.table in manifest.files else "row by row"  # a cluster writes parts
    claim = f"{_CLAIM}, {same if exact else 'except for its pseudonyms'}."
    wrong: str | None = None
    try:
        for method in methods:
            again = method.anonymize(scrubbed, seed=release.seed)
            wrong = _different(manifest, again, exact) or (None if _same_table(release, again, exact) else "its table")
            if wrong is None:
                break
    finally:
        if scrubbed is not log:
            scrubbed.close()
    return Verdict(claim, wrong is None, wrong and f"{wrong} differs")


def _different(manifest: Manifest, again: Release, exact: bool) -> str | None:
    """The first field of a manifest that is different in the new release."""
    linkage = again.linkage
    if not exact and _close(manifest.linkage, linkage):  # measured on other people
        linkage = manifest.linkage
    expected = again.manifest.model_copy(
        update={
            "linkage": linkage,
            "table": manifest.table,
            "files": manifest.files,
            "columns": manifest.columns,
            "about": manifest.about,  # words of the publisher, which nothing confirms
            "input": manifest.input,  # the same log may be read from other files
            **({} if exact else {name: getattr(manifest, name) for name in _KEYED}),
        }
    )
    return next(
        (f"'{name}'" for name in Manifest.model_fields if getattr(expected, name) != getattr(manifest, name)), None
    )


def _close(stated: Linkage | None, found: Linkage | None) -> bool:
    """Whether two measurements of one release differ no more than a random choice of people and events explains."""
    if max(one.users if one is not None else 0 for one in (stated, found)) < _PEOPLE:
        return True
    if stated is None or found is None:
        return False
    sure = 0.02 + 3.5 * (found.high - found.low)
    ordered = 0 <= stated.low <= stated.learned <= stated.high <= 1
    shares = all(
        abs(getattr(stated, name) - getattr(found, name)) <= sure
        for name in ("linked", "learned", "low", "high", "baseline")
    )
    numbers = all(
        0.5 <= (getattr(stated, name) + 10) / (getattr(found, name) + 10) <= 2
        for name in ("users", "candidates", "pseudonyms", "texts")
    )
    return stated.link == found.link and ordered and shares and numbers


def _same_table(release: Release, again: Release, exact: bool) -> bool:
    manifest = release.manifest
    if exact and manifest.table in manifest.files:
        format = next(name for name, suffix in writers.SUFFIXES.items() if manifest.table == f"log{suffix}")
        return writers.sha256(format, again.schema, again.batches) == manifest.files[manifest.table]
    key = secrets.token_bytes(16)  # secret, so nobody can find two tables with the same digest
    # AOL's format has no numbers of events, and always a column for times, which must be empty.
    common = [name for name in release.schema.names if name in again.schema.names]
    return content(release, common, key) == content(again, common, key)


def content(release: Release, names: list[str], key: bytes) -> bytes:
    """A digest of the content of a release, independent of its pseudonyms and the order of events under each.

    Rows of one event, events under one pseudonym and pseudonyms are multisets: keyed digests of their members are added
    and digested again.

    Args:
        release: A release whose rows are in the order of pseudonyms and events.
        names: The columns that count.
        key: Sixteen secret bytes.
    """
    owner = next((name for name in ("user", "session") if name in names), None)
    values = [name for name in names if name not in ("user", "session", "event")]
    rows, events, owners = [], [], []
    for batch in release.batches():
        rows.append(_digested(batch, values, key))
        if "event" in names:
            events.append(batch["event"].to_numpy())
        if owner is not None:
            owners.append(batch[owner].to_numpy())
    members = np.concatenate(rows) if rows else np.empty(0, np.uint64)
    of = np.concatenate(owners) if owners else np.arange(len(members))
    if events:
        event = np.concatenate(events)
        begin = np.flatnonzero(np.append(True, event[1:] != event[:-1])) if len(event) else np.empty(0, np.int64)
        members, of = _summed(members, begin, key), of[begin] if owners else np.arange(len(begin))
    if owners:
        begin = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if len(of) else np.empty(0, np.int64)
        members = _summed(members, begin, key)
    return hashlib.sha256(np.sort(members).tobytes()).digest()


def _summed(members: Hashes, begin: NDArray[np.int64], key: bytes) -> Hashes:
    return keyed(key, np.add.reduceat(members, begin)) if len(begin) else members[:0]


def _digested(batch: pa.RecordBatch, names: list[str], key: bytes) -> Hashes:
    """A keyed digest of some columns of each row."""
    from queryveil.kernels.digest import digests

    found = np.zeros(batch.num_rows, np.uint64)
    for name in names:
        column = batch[name]
        there = column.is_valid().to_numpy(zero_copy_only=False)
        parts: tuple[Hashes, ...]
        if pa.types.is_string(column.type):
            parts = digests(*byte_spans(pc.fill_null(column, "")))
        elif pa.types.is_floating(column.type):
            parts = (pc.fill_null(column, 0.0).to_numpy().view(np.uint64),)
        else:
            parts = (pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64),)
        for part in (*parts, there.astype(np.uint64)):
            found = keyed(key, found ^ part)
    return found
