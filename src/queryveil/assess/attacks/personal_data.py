"""Residual personal data: names, addresses and numbers of people in released queries."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import sampled
from queryveil.assess.attacks.finding import Finding, InapplicableError, share, shown
from queryveil.assess.attacks.view import NO_QUERY, view
from queryveil.errors import missing
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sharing import shared
from queryveil.release import Release, loaded
from queryveil.scrubbing import DEFAULT_KINDS, KINDS, mask, scope_of
from queryveil.scrubbing.texts import Masked, mask_rare

WIDESPREAD = 3
"""What so many users typed is hardly anybody's own."""
EXAMPLES = 5


def personal_data(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """How many of the distinct released queries hold something personal that fewer than 3 users of the log typed.

    What is looked for is what `queryveil.scrubbing` finds. A name without a place is counted apart, because most such
    queries are about people whom everybody knows; so is what 3 or more users issued, because it is hardly anybody's
    own. There is no control: what is published is published, and one such query is a success.

    Args:
        release: A release of queries.
        log: Its log, for comparison.
        seed: Random seed.
    """
    seen = view(release, log)
    if not seen.texts:
        raise InapplicableError("personal data is looked for in releases of queries")
    if release.manifest.kind == "tokens":
        raise InapplicableError("tokens stand for the words, so there is nothing to recognize before they are read")
    with loaded(release, seen.log) as released:
        queries = seen.log.engine.fetch(
            f"SELECT query FROM {released} WHERE query IS NOT NULL GROUP BY query ORDER BY query"
        )
    if not len(queries):
        raise InapplicableError(NO_QUERY)
    texts = queries["query"].combine_chunks()
    lacking = missing("phonenumbers", "stdnum")
    if lacking is not None:
        raise InapplicableError(lacking)
    scope = scope_of(seen.log.language, None)
    found = mask(texts, KINDS, scope)
    before = shared(seen.log, "personal data", lambda: mask(seen.log.query_text, KINDS, scope).hits)
    # Nobody typed what is not in the log, so it is not widespread.
    place = pc.index_in(texts, value_set=seen.log.query_text.cast(texts.type))
    users = np.append(seen.log.users_per_query, 0)[pc.fill_null(place, seen.log.n_queries).to_numpy()]
    few = users < WIDESPREAD
    hit = few & (found.hits & _DEFAULT != 0)
    widespread = 100_000 * float((~few & (found.hits & _DEFAULT != 0)).mean())
    details: dict[str, float | int | str] = {}
    for bit, kind in enumerate(KINDS):
        count = int((found.hits[few] >> bit & 1).sum())
        if count:
            details[kind] = 100_000 * count / len(hit)
            details[f"{kind}_queries"] = count
    original = float(((before & _DEFAULT != 0) & (seen.log.users_per_query < WIDESPREAD)).mean())
    listed = ", ".join(f"{kind} {details[kind]:,.0f}" for kind in KINDS if kind in details)
    return Finding(
        attack="personal_data",
        setting="",
        number=f"released queries that hold something personal and that fewer than {WIDESPREAD} people issued",
        unit="rate",
        estimate=share(int(hit.sum()), len(hit)),
        baseline=0.0,
        baseline_text="a release without anything personal has none",
        control=None,
        control_text="none: what is published is published",
        trials=len(hit),
        beside=f"in the log {shown(original, 'rate')}"
        + (f"; by kind: {listed}" if listed else "")
        + (f"; not counted, of {WIDESPREAD} or more users: {widespread:,.0f}" if widespread else ""),
        examples=_examples(seen.log, found, hit, seed),
        details=details | {"log": 100_000 * original, "widespread": widespread},
    )


_DEFAULT = sum(1 << KINDS.index(kind) for kind in DEFAULT_KINDS)


def _examples(
    log: LocalLog, found: Masked, hit: np.ndarray[tuple[int], np.dtype[np.bool_]], seed: int
) -> tuple[str, ...]:
    """A few of what was found, with all masked that is personal, and every word that few users typed."""
    some = sampled(np.flatnonzero(hit), EXAMPLES, np.random.default_rng(seed))
    log.ensure_tables("word_users")
    common = log.engine.fetch(
        f"SELECT w.word AS word FROM words w JOIN word_users u ON u.word_id = w.word_id WHERE u.users >= {WIDESPREAD}"
    )["word"]
    few = Masked(found.texts.take(pa.array(some)), found.hits[some])
    shown = mask_rare(few, common.combine_chunks().cast(pa.string()), log.language)
    return tuple(sorted(set(shown.texts.to_pylist())))
