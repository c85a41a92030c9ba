"""Scrubbing: personal data in queries is removed or masked, and results with such data left out, before any method.

It reduces the personal data in a release, but promises nothing: it finds forms and listed names, not meaning.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.engines import Table
from queryveil.errors import QueryveilError, parameter
from queryveil.log import Hits, QueryLog, Scrub, Size, check_is_log
from queryveil.scrubbing.clicked import url_hits
from queryveil.scrubbing.decisions import Decisions, read_decisions
from queryveil.scrubbing.scope import ENGLISH, Scope, check_countries, scope_of
from queryveil.scrubbing.texts import (
    DEFAULT_KINDS,
    Finds,
    Masked,
    check_packages,
    finds,
    mask,
    mask_rare,
    packages_of,
)
from queryveil.text import Language
from queryveil.text.masks import KINDS, RARE

__all__ = [
    "DEFAULT_KINDS", "ENGLISH", "KINDS", "Finds", "Scope", "check_scrub", "finds", "mask", "repeat_scrub", "scope_of",
    "scrub", "scrub_but", "url_hits",
]  # fmt: skip

_SCHEMA = pa.schema([("query_id", pa.int64()), ("text", pa.string()), ("hits", pa.int64()), ("stays", pa.bool_())])
_URLS = pa.schema([("url_id", pa.int64()), ("hits", pa.int64())])


def scrub(
    log: QueryLog,
    how: Literal["remove", "mask"] = "remove",
    *,
    kinds: Sequence[str] | None = None,
    rare_term_users: int | None = None,
    countries: Sequence[str] | None = None,
) -> QueryLog:
    """Remove or mask personal data in the queries of a log, and leave out results with such data in their address.

    Names and street addresses are looked for in the languages of the log. Extra columns stay unchanged.

    Args:
        log: The log, on either engine. It is not changed.
        how: `remove` leaves out every event whose query has a hit. `mask` replaces each hit by its kind, as in `<email>
            pizza`; it leaves out the clicks and views of such events, and events whose query has no word left. Both
            leave out clicks and views whose address has a hit, and keep their events.
        kinds: Kinds of personal data: `url`, `email`, `card`, `iban`, `national_id`, `phone`, `ip`, `address`,
            `name_place` and `name`; by default all but `name`.
        rare_term_users: Also treat every word that fewer users of the log typed as a hit, `<rare>`; only in queries.
        countries: Countries whose phone numbers, national ids and bank accounts are looked for, such as `["DE", "AT"]`;
            by default those of the languages of the log, and in an English log the forms of some twenty countries.

    Returns:
        A log on the same engine with the fingerprint of the original, so that its releases are releases of the
        original; `stats.scrub` says how it was scrubbed and how much was found.

    Raises:
        QueryveilError: If a parameter is wrong, the log was scrubbed before, or nothing is left of it.

    Example:
        >>> from queryveil import read_log
        >>> log = read_log(pa.table({"user": ["a", "b"], "query": ["jane@example.com pizza", "pizza"]}))
        >>> scrub(log, "mask").stats.scrub.hits
        {'email': Hits(queries=1, events=1, urls=0, clicks=0)}
    """
    return scrub_but(log, None, how, kinds=kinds, rare_term_users=rare_term_users, countries=countries)


def scrub_but(
    log: QueryLog,
    decisions: Path | None,
    how: Literal["remove", "mask"] = "remove",
    *,
    kinds: Sequence[str] | None = None,
    rare_term_users: int | None = None,
    countries: Sequence[str] | None = None,
) -> QueryLog:
    """As `scrub`, but leave alone what a reviewer allowed.

    A query that is allowed stays as it is. So does one in which everything that is found is part of words that are
    allowed: who allows `smith` has not allowed `john smith chicago`.
    Words that few users typed are scrubbed all the same, because that is about users and not about texts. A query that
    is blocked is left out instead of masked.

    Args:
        log: The log.
        decisions: The file of decisions; None for none.
        how: As for `scrub`, and so are the others.
        kinds: Kinds of personal data.
        rare_term_users: Least users of a word.
        countries: Countries whose numbers are looked for.
    """
    check_is_log(log, "scrub")
    check_scrub(how, kinds, rare_term_users, countries)
    decided = None if decisions is None else Decisions.of(read_decisions(decisions))
    if log.stats.scrub is not None:
        raise QueryveilError("The log was scrubbed already; scrub the original log once, for everything.")
    chosen = tuple(kind for kind in KINDS if kind in (DEFAULT_KINDS if kinds is None else kinds))
    common = None
    if rare_term_users is not None:
        log.ensure_tables("word_users")
        # Words that many typed are few, whatever the log.
        common = log.engine.fetch(
            "SELECT w.word AS word FROM words w JOIN word_users u ON u.word_id = w.word_id"
            f" WHERE u.users >= {rare_term_users}"
        )["word"]
        common = pa.array(common.to_pylist(), pa.string())
    addresses = "SELECT url_id, url FROM urls" if log.has_results else "SELECT url_id, url FROM urls WHERE url IS NULL"
    scope = scope_of(log.language, countries)
    masked = partial(_mask_batch, kinds=chosen, common=common, language=log.language, scope=scope, decided=decided)
    with log.workspace() as work:
        queries = work.map("SELECT query_id, query FROM queries", masked, _SCHEMA, "scrubbed queries")
        urls = work.map(addresses, partial(_look_at_batch, kinds=chosen, scope=scope), _URLS, "scrubbed addresses")
        record = _counted(log, queries, urls, how, chosen, rare_term_users, scope)
        record = record.model_copy(update={"decisions": None if decisions is None else decisions.name})
        stays = "hits = 0" if how == "remove" else "stays"
        texts = f"SELECT query_id, CASE WHEN {stays} THEN text END AS text, hits = 0 AS same FROM {queries}"
        return log.rewritten(texts, f"SELECT url_id FROM {urls} WHERE hits > 0", record)


def check_scrub(
    how: str, kinds: Sequence[str] | None, rare_term_users: int | None, countries: Sequence[str] | None = None
) -> None:
    """Refuse parameters of `scrub` that make no sense."""
    check_countries(countries)
    if how not in ("remove", "mask"):
        named = parameter("scrub", "how", flag="scrub")
        raise QueryveilError(f"{named} must be one of remove, mask. Got {how!r} instead.")
    wrong = next((kind for kind in kinds or () if kind not in KINDS), None)
    if wrong is not None or (kinds is not None and not kinds and rare_term_users is None):
        got = f"{wrong!r}" if wrong is not None else "none"
        named = parameter("scrub", "kinds", flag="scrub_kinds")
        raise QueryveilError(f"{named} must name some of {', '.join(KINDS)}. Got {got} instead.")
    if rare_term_users is not None and (isinstance(rare_term_users, bool) or rare_term_users < 2):
        named = parameter("scrub", "rare_term_users", flag="scrub_rare_users")
        raise QueryveilError(f"{named} must be an integer of at least 2. Got {rare_term_users!r} instead.")
    check_packages(DEFAULT_KINDS if kinds is None else kinds)


def repeat_scrub(log: QueryLog, done: Scrub, decisions: Path | None = None) -> QueryLog:
    """Scrub a log as another was.

    Args:
        log: The log.
        done: How the other was scrubbed.
        decisions: The file of decisions that allowed queries then.

    Raises:
        QueryveilError: If it cannot have been scrubbed in this way.
    """
    kinds = done.kinds or ()
    rare, countries = done.rare_term_users, done.countries
    return scrub_but(log, decisions, done.how, kinds=kinds, rare_term_users=rare, countries=countries)


def _mask_batch(
    batch: pa.RecordBatch,
    *,
    kinds: tuple[str, ...],
    common: pa.Array | None,
    language: Language,
    scope: Scope,
    decided: Decisions | None,
) -> pa.RecordBatch:
    found = _mask_but(batch["query"], kinds, scope, decided)
    if common is not None:
        found = mask_rare(found, common, language)
        # A masked word may have ruled out a hit, such as `version` before `1.2.3.4`.
        again = _mask_but(found.texts, kinds, scope, decided)
        found = Masked(again.texts, found.hits | again.hits)
    # Masks without words are the same for everybody: as queries they would be the most popular ones of the log.
    stays = (found.hits == 0) | (language.words(found.texts).per_query > 0)
    if decided is not None:  # after masking nobody could tell that it is blocked
        stays &= ~((found.hits != 0) & decided.block(batch["query"].cast(pa.large_string()), language))
    columns = [batch["query_id"].cast(pa.int64()), found.texts.cast(pa.string()), pa.array(found.hits), pa.array(stays)]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _mask_but(texts: pa.Array, kinds: tuple[str, ...], scope: Scope, decided: Decisions | None) -> Masked:
    """As `mask`, but texts that are allowed stay, and those in which allowed words hold everything that is found."""
    found = mask(texts, kinds, scope)
    places = np.flatnonzero(found.hits)
    if decided is None or not len(places):
        return found
    some = texts.take(pa.array(places)).cast(pa.large_string())
    itself = pc.is_in(some, value_set=decided.allowed_queries).to_numpy(zero_copy_only=False)
    words = set(decided.allowed_words.to_pylist())
    held = [_within(finds(text, kinds, scope), words) for text in some.to_pylist()] if words else False
    stays = np.zeros(len(texts), np.bool_)
    stays[places] = itself | held
    return Masked(pc.if_else(pa.array(stays), texts, found.texts), np.where(stays, 0, found.hits))


def _within(found: Finds, phrases: set[str]) -> bool:
    """Whether each find is part of one of the phrases, which stand in the text between blanks."""
    blanks = [at for at, letter in enumerate(found.text) if letter == " "]
    starts, ends = [0, *(at + 1 for at in blanks)], [*blanks, len(found.text)]
    held = [
        (start, end)
        for size in {phrase.count(" ") for phrase in phrases}
        for start, end in zip(starts, ends[size:], strict=False)
        if found.text[start:end] in phrases
    ]
    return all(any(a <= start and end <= b for a, b in held) for start, end in found.spans)


def _look_at_batch(batch: pa.RecordBatch, *, kinds: tuple[str, ...], scope: Scope) -> pa.RecordBatch:
    hits = url_hits(batch["url"].cast(pa.string()), kinds, scope)
    return pa.RecordBatch.from_arrays([batch["url_id"].cast(pa.int64()), pa.array(hits)], schema=_URLS)


def _counted(
    log: QueryLog,
    queries: Table,
    urls: Table,
    how: Literal["remove", "mask"],
    kinds: tuple[str, ...],
    rare: int | None,
    scope: Scope,
) -> Scrub:
    """What was found, by kind."""
    log.ensure_tables("per_query")
    found = log.engine.fetch(
        "SELECT s.hits AS hits, s.stays AS stays, count(*) AS queries, CAST(sum(p.events) AS BIGINT) AS events FROM"
        f" {queries} s JOIN per_query p ON p.query_id = s.query_id WHERE s.hits > 0 GROUP BY s.hits, s.stays"
    )
    each = "sum(clicked)" if log.has_views else "count(*)"
    clicked = log.engine.fetch(
        "SELECT s.hits AS hits, count(*) AS urls, CAST(sum(c.clicks) AS BIGINT) AS clicks FROM"
        f" {urls} s JOIN (SELECT url_id, {each} AS clicks FROM {log.results} GROUP BY url_id) AS c"
        " ON c.url_id = s.url_id WHERE s.hits > 0 GROUP BY s.hits"
    )

    def counted(bits: int) -> Hits:
        some = found.filter(found["hits"].to_numpy() & bits != 0)
        led = clicked.filter(clicked["hits"].to_numpy() & bits != 0)
        return Hits(
            queries=int(some["queries"].to_numpy().sum()),
            events=int(some["events"].to_numpy().sum()),
            urls=int(led["urls"].to_numpy().sum()),
            clicks=int(led["clicks"].to_numpy().sum()),
        )

    gone = found.filter(pc.invert(found["stays"])) if how == "mask" else found
    of_kind = {kind: counted(1 << bit) for bit, kind in enumerate((*KINDS, RARE))}
    return Scrub(
        how=how,
        kinds=kinds,
        rare_term_users=rare,
        countries=scope.countries,
        packages=packages_of(kinds),
        hits={kind: count for kind, count in of_kind.items() if count.queries or count.urls},
        total=counted(-1),
        left_out=Hits(
            queries=int(gone["queries"].to_numpy().sum()),
            events=int(gone["events"].to_numpy().sum()),
        ),
        log=Size(
            queries=log.stats.queries,
            events=log.stats.events,
            users=log.stats.users,
            clicks=log.stats.clicks,
            views=log.stats.views or None,
        ),
    )
