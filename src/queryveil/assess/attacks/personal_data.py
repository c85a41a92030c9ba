"""Residual personal data: names, addresses and numbers of people in released queries."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Longs, sampled
from queryveil.assess.attacks.finding import Finding, InapplicableError, share, shown
from queryveil.assess.attacks.view import NO_QUERY
from queryveil.engines import Workspace
from queryveil.errors import missing
from queryveil.kernels.digest import digests
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import keyed, signed
from queryveil.log.sharing import shared
from queryveil.release import Release, check_log, loaded
from queryveil.scrubbing import DEFAULT_KINDS, KINDS, mask, scope_of
from queryveil.scrubbing.texts import Masked, mask_rare
from queryveil.text import Language
from queryveil.text.arrays import byte_spans

WIDESPREAD = 3
"""What so many users typed is hardly anybody's own."""
EXAMPLES = 5
QUERIES = 50_000
"""Most queries of a log on Spark that are looked at, so that the cost does not grow with the log."""


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
    check_log(release, log)
    if "query" not in release.schema.names:
        raise InapplicableError("personal data is looked for in releases of queries")
    if release.manifest.kind == "tokens":
        raise InapplicableError("tokens stand for the words, so there is nothing to recognize before they are read")
    lacking = missing("phonenumbers", "stdnum")
    if lacking is not None:
        raise InapplicableError(lacking)
    texts = _texts(release, log) if isinstance(log, LocalLog) else _some_texts(release, log, seed)
    if not len(texts.released):
        raise InapplicableError(NO_QUERY)
    found = mask(texts.released, KINDS, scope_of(log.language, None))
    few = texts.users < WIDESPREAD
    hit = few & (found.hits & _DEFAULT != 0)
    widespread = 100_000 * float((~few & (found.hits & _DEFAULT != 0)).mean())
    details: dict[str, float | int | str] = {}
    for bit, kind in enumerate(KINDS):
        count = int((found.hits[few] >> bit & 1).sum())
        if count:
            details[kind] = 100_000 * count / len(hit)
            details[f"{kind}_queries"] = count
    original = float(((texts.hits & _DEFAULT != 0) & (texts.log_users < WIDESPREAD)).mean())
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
        + (f"; not counted, of {WIDESPREAD} or more users: {widespread:,.0f}" if widespread else "")
        + (f"; {texts.drawn}" if texts.drawn else ""),
        examples=_examples(texts, log.language, found, hit, seed),
        details=details | {"log": 100_000 * original, "widespread": widespread},
    )


@dataclass(frozen=True, eq=False)
class _Texts:
    """What is looked at.

    Attributes:
        released: Distinct released queries.
        users: How many users of the log issued each; 0 of what is not in the log.
        hits: What is found in queries of the log.
        log_users: How many users issued each of these.
        common: Gives words that enough users typed.
        drawn: How many of how many they are, if not all.
    """

    released: pa.Array
    users: Longs
    hits: NDArray[np.int64]
    log_users: Longs
    common: Callable[[], pa.Array]
    drawn: str = ""


def _texts(release: Release, log: LocalLog) -> _Texts:
    """All queries of a release and of its log."""
    with loaded(release, log) as released:
        queries = log.engine.fetch(
            f"SELECT query FROM {released} WHERE query IS NOT NULL GROUP BY query ORDER BY query"
        )
    texts = queries["query"].combine_chunks()
    scope = scope_of(log.language, None)
    hits = shared(log, "personal data", lambda: mask(log.query_text, KINDS, scope).hits)
    # Nobody typed what is not in the log, so it is not widespread.
    place = pc.index_in(texts, value_set=log.query_text.cast(texts.type))
    users = np.append(log.users_per_query, 0)[pc.fill_null(place, log.n_queries).to_numpy()]
    log.ensure_tables("word_users")
    words = f"SELECT w.word AS word FROM words w JOIN word_users u ON u.word_id = w.word_id {_COMMON}"
    return _Texts(texts, users, hits, log.users_per_query, lambda: log.engine.fetch(words)["word"].combine_chunks())


_COMMON = f"WHERE u.users >= {WIDESPREAD}"


def _some_texts(release: Release, log: QueryLog, seed: int) -> _Texts:
    """Some queries of a release and of its log, at random, with the users that they have in the whole log."""
    log.ensure_tables("per_query", "word_users")
    key = log.secret(seed, "sample of queries")
    with loaded(release, log) as released, log.workspace() as work:
        (n,) = work.row(f"SELECT count(DISTINCT query) AS n FROM {released}")
        some = _draw(work, f"SELECT query FROM {released} WHERE query IS NOT NULL GROUP BY query", key)
        ours = work.read(some)
        found = work.fetch(
            f"SELECT s.query AS query, coalesce(p.users, 0) AS users FROM {ours} s LEFT JOIN queries q"
            " ON q.query = s.query LEFT JOIN per_query p ON p.query_id = q.query_id ORDER BY query"
        )
        common = work.fetch(
            f"SELECT w.word AS word FROM {ours} s JOIN queries q ON q.query = s.query JOIN query_terms t"
            " ON t.query_id = q.query_id JOIN words w ON w.word_id = t.word_id JOIN word_users u"
            f" ON u.word_id = t.word_id {_COMMON} GROUP BY w.word"
        )["word"].combine_chunks()
        before = work.read(_draw(work, "SELECT query FROM queries", key))
        original = work.fetch(
            f"SELECT s.query AS query, p.users AS users FROM {before} s JOIN queries q ON q.query = s.query"
            " JOIN per_query p ON p.query_id = q.query_id"
        )
    return _Texts(
        found["query"].combine_chunks(),
        found["users"].to_numpy(),
        mask(original["query"].combine_chunks(), KINDS, scope_of(log.language, None)).hits,
        original["users"].to_numpy(),
        lambda: common,
        f"looked for in {len(found):,} of {n:,} released queries, drawn at random" if len(found) < n else "",
    )


def _draw(work: Workspace, queries: str, key: bytes) -> pa.Table:
    """Some of the texts of a query, at random; which ones follows from the texts."""
    draws = work.map(queries, partial(_drawn, key=key), _DRAWN, "drawn queries")
    return work.fetch(f"SELECT query FROM {draws} ORDER BY draw, query LIMIT {QUERIES}")


_DRAWN = pa.schema([("query", pa.string()), ("draw", pa.int64())])


def _drawn(batch: pa.RecordBatch, *, key: bytes) -> pa.RecordBatch:
    draws = signed(keyed(key, digests(*byte_spans(batch["query"]))[0]))
    return pa.RecordBatch.from_arrays([batch["query"].cast(pa.string()), pa.array(draws)], schema=_DRAWN)


_DEFAULT = sum(1 << KINDS.index(kind) for kind in DEFAULT_KINDS)


def _examples(texts: _Texts, language: Language, found: Masked, hit: Bools, seed: int) -> tuple[str, ...]:
    """A few of what was found, with all masked that is personal, and every word that few users typed."""
    some = sampled(np.flatnonzero(hit), EXAMPLES, np.random.default_rng(seed))
    few = Masked(found.texts.take(pa.array(some)), found.hits[some])
    shown = mask_rare(few, texts.common().cast(pa.string()), language)
    return tuple(sorted(set(shown.texts.to_pylist())))
