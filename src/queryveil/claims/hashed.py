"""Claims about releases of hashed words, as far as they can be checked without the key.

Tokens stand for words if two structures are the same except for names: which words follow each other in which texts,
and which users have how many events of them. Colours are refined, round by round (Boris Weisfeiler and Andrei Leman
1968): a text gets its colour from the words at its places and from the users who have it, a user from their texts, and
a word from the places where it stands. If both sides have the same number of texts of every colour, and every word has
a colour of its own, then the token of every word is known, and the release is what it should be.
"""

import secrets
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged, offsets
from queryveil.claims.base import Claim, Evidence, sizes_of
from queryveil.claims.linked import Sessions, sessions_of
from queryveil.engines import Table, Workspace
from queryveil.kernels.digest import digests
from queryveil.text.arrays import byte_spans

_FORM = "^[0-9a-f]{16}( [0-9a-f]{16})*$"
_RUNS = pa.schema([("length", pa.int64()), ("n", pa.int64()), ("query", pa.string())])
_TOKENS = pa.schema([("token", pa.string()), ("n", pa.int64())])
_SPELLED = pa.schema([("place", pa.int64()), ("digit", pa.string()), ("n", pa.int64())])
_TEXTS = pa.schema([("query", pa.string()), ("low", pa.int64()), ("high", pa.int64())])
_SEQUENCES = pa.schema([("query_id", pa.int64()), ("low", pa.int64()), ("high", pa.int64())])
_PLACES = pa.schema([("text", pa.int64()), ("position", pa.int64()), ("word", pa.int64())])
_DIGITS = 16
_MANY, _RARE = 200, 1e-9
"""Digits are tested from this number of tokens on; the probability that this refuses an honest release."""
_ROUNDS = 8
"""Most rounds of refinement: words that these do not distinguish count as the same."""
_PART = 2_000_000
"""About how many words are in memory at once."""
_BITS = 36
"""Bits of what is summed up: 2^27 of them fit into a whole number of the engine."""


class HashedWords(Claim):
    """Tokens stand in the place of words, one for each, and occur as words do."""

    kind: Literal["hashed-words"] = "hashed-words"
    sessions: Sessions | None = None
    """What a session is, where pseudonyms stand for sessions."""
    of_words: ClassVar[bool] = True
    short: ClassVar[str] = "Every word is replaced by a token; no word of the log is released."

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        return (
            "Every event whose query has a word is released with as many tokens as there are words and nothing else; as"
            " many distinct tokens as words occur, equally often, in the same places of equally many texts of the same"
            f" {self._owner}s, as far as words and {self._owner}s can be distinguished by that; and no word of the log"
            " is among them."
        )

    @property
    def _owner(self) -> str:
        return "user" if self.sessions is None else "session"

    def check(self, evidence: Evidence) -> str | None:
        """Compare what can be counted without the key: events, lengths, users, tokens; then what stands beside what."""
        columns = evidence.columns
        if self.sessions is not None and "session" not in columns:
            return "the release has no column 'session'"
        clicks = f"SELECT count(url) + count(rank) AS n FROM {evidence.released}"  # noqa: S608  # a table of ours
        if "url" in columns and evidence.work.row(clicks)[0]:
            return "a click is released"
        with evidence.log.workspace() as work:
            owners = "SELECT event_id, user_id AS owner FROM events"
            if self.sessions is not None:
                owners = f"SELECT event_id, owner FROM {sessions_of(work, self.sessions)}"  # noqa: S608  # a table of ours
            owner = self._owner if self._owner in columns else None
            return self._wrong_counts(evidence, owners) or _wrong_structure(evidence, owner, owners)

    def _wrong_counts(self, evidence: Evidence, owners: str) -> str | None:
        grouped = f"SELECT query, count(*) AS n FROM {evidence.released} GROUP BY query"  # noqa: S608  # a table of ours
        with evidence.log.workspace() as work:
            texts = work.map(grouped, _measured, _RUNS, "lengths of texts")
            tokens = work.map(grouped, _cut, _TOKENS, "tokens")
            return _wrong_tokens(evidence, texts, tokens) or self._wrong_sizes(evidence, owners, texts, tokens)

    def _wrong_sizes(self, evidence: Evidence, owners: str, texts: Table, tokens: Table) -> str | None:
        """The first number of words, occurrences or events that log and release do not have equally often."""
        long = "SELECT query_id, count(*) AS length FROM query_terms GROUP BY query_id"
        events = (
            f"SELECT e.query_id AS query_id, o.owner AS owner, count(*) AS n FROM events e JOIN ({owners}) AS o"  # noqa: S608  # parts of this module
            " ON o.event_id = e.event_id GROUP BY e.query_id, o.owner"
        )
        word = (
            "SELECT t.word_id AS word_id, CAST(sum(e.n) AS BIGINT) AS n FROM query_terms t JOIN"  # noqa: S608  # parts of this module
            f" ({events}) AS e ON e.query_id = t.query_id GROUP BY t.word_id"
        )
        token = f"SELECT token, CAST(sum(n) AS BIGINT) AS n FROM {tokens} GROUP BY token"  # noqa: S608  # a table of ours
        compared = [
            (
                "events have {} words",
                f"SELECT length AS size, CAST(sum(n) AS BIGINT) AS n FROM {texts} GROUP BY length",  # noqa: S608  # a table of ours
                f"SELECT l.length AS size, CAST(sum(e.n) AS BIGINT) AS n FROM ({long}) AS l JOIN ({events}) AS e"  # noqa: S608  # parts of this module
                " ON e.query_id = l.query_id GROUP BY l.length",
            ),
            ("words occur {} times", sizes_of(token), sizes_of(word)),
        ]
        if self._owner in evidence.columns:
            mine = f'SELECT "{self._owner}", count(*) AS n FROM {evidence.released} GROUP BY "{self._owner}"'  # noqa: S608  # parts of this module
            theirs = (
                f"SELECT e.owner AS owner, CAST(sum(e.n) AS BIGINT) AS n FROM ({events}) AS e JOIN ({long}) AS l"  # noqa: S608  # parts of this module
                " ON l.query_id = e.query_id GROUP BY e.owner"
            )
            compared.append((f"{self._owner}s have {{}} events", sizes_of(mine), sizes_of(theirs)))
        for what, released, original in compared:
            row = evidence.unequal(released, original)
            if row is not None:
                return f"{row[1]} {what.format(row[0])} in the release, {row[2]} in the log"
        return None


def _wrong_tokens(evidence: Evidence, texts: Table, tokens: Table) -> str | None:
    """What is wrong with the tokens by themselves."""
    wrong = evidence.first(f"SELECT query FROM {texts} WHERE length = 0 ORDER BY query LIMIT 1")  # noqa: S608  # a table of ours
    if wrong is not None:
        return f"the query '{wrong[0]}' is not made of tokens"
    wrong = evidence.first(
        f"SELECT t.token AS token FROM (SELECT token FROM {tokens} GROUP BY token) AS t"  # noqa: S608  # a table of ours
        " JOIN words w ON w.word = t.token LIMIT 1"
    )
    if wrong is not None:
        return f"the token '{wrong[0]}' is a word of the log"
    if _patterned(evidence, tokens):
        return "the digits of tokens are not equally frequent, as those of keyed digests are"
    return None


def _patterned(evidence: Evidence, tokens: Table) -> bool:
    """Whether some digit of tokens is more frequent than by chance, as if they spelled words (chi-square test)."""
    from scipy.stats import chi2

    with evidence.log.workspace() as steps:
        distinct = f"SELECT token FROM {tokens} GROUP BY token"  # noqa: S608  # a table of ours
        digits = steps.map(distinct, _spelled, _SPELLED, "digits of tokens")
        found = steps.fetch(
            f"SELECT place, digit, CAST(sum(n) AS BIGINT) AS n FROM {digits} GROUP BY place, digit"  # noqa: S608  # a table of ours
        )
    place, counts = found["place"].to_numpy(), found["n"].to_numpy().astype(np.float64)
    n_tokens = float(counts[place == 1].sum())
    if n_tokens < _MANY:
        return False
    expected = n_tokens / 16
    squares = np.bincount(place, (counts - expected) ** 2 / expected, _DIGITS + 1)[1:]
    missing = 16 - np.bincount(place, minlength=_DIGITS + 1)[1:]  # a digit that never occurs has no row
    return bool((chi2.sf(squares + missing * expected, 15) < _RARE / _DIGITS).any())


def _measured(batch: pa.RecordBatch) -> pa.RecordBatch:
    """How many tokens each query is made of; 0 if it is not made of tokens."""
    query = pc.fill_null(batch["query"].cast(pa.string()), "")
    formed = pc.match_substring_regex(query, _FORM)
    length = pc.if_else(formed, pc.add(pc.count_substring(query, " "), 1), 0)
    return pa.RecordBatch.from_arrays([length.cast(pa.int64()), batch["n"].cast(pa.int64()), query], schema=_RUNS)


def _spelled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """How often each digit stands at each place of some tokens."""
    token = batch["token"].cast(pa.string())
    counted = [pc.utf8_slice_codeunits(token, at, at + 1).value_counts() for at in range(_DIGITS)]
    place = np.repeat(np.arange(1, _DIGITS + 1), [len(one) for one in counted])
    digit, n = (pa.concat_arrays([one.field(name) for one in counted]) for name in ("values", "counts"))
    return pa.RecordBatch.from_arrays([pa.array(place), digit, n], schema=_SPELLED)


def _cut(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The tokens of each query, one by one."""
    parts = pc.split_pattern(pc.fill_null(batch["query"].cast(pa.string()), ""), " ")
    n = batch["n"].cast(pa.int64()).take(pc.list_parent_indices(parts))
    return pa.RecordBatch.from_arrays([pc.list_flatten(parts), n], schema=_TOKENS)


class _Sides(NamedTuple):
    """The tables that are compared, side 0 of the log and side 1 of the release."""

    places: Table
    """The word at each position of each text."""
    held: Table
    """How many events each user has of each text; without users all events are of one."""
    texts: Table
    """The released texts and their numbers."""


def _wrong_structure(evidence: Evidence, owner: str | None, owners: str) -> str | None:
    """Refine the colours of words, texts and users, round by round, until log and release differ or nothing changes.

    Args:
        evidence: The log and the release.
        owner: The column of pseudonyms, None if there is none.
        owners: SQL of event_id and owner: the user or session of each event of the log.
    """
    key = secrets.token_bytes(16)  # so that nobody can make a release for which the sums happen to be equal
    with evidence.log.workspace() as work:
        sides = _lay_out(evidence, work, owner, owners)
        places, held = sides.places, sides.held
        words = work.table(
            f"SELECT side, word AS id, CAST(0 AS BIGINT) AS hue FROM {places} GROUP BY side, word",  # noqa: S608  # a table of ours
            "colours of words",
        )
        kinds = 0
        for _ in range(_ROUNDS):
            with evidence.log.workspace() as steps:
                shapes = _summed(
                    steps,
                    f"SELECT p.side AS side, p.text AS id, h.hue AS hue, p.position AS place FROM {places} p"  # noqa: S608  # tables of ours
                    f" JOIN {words} h ON h.side = p.side AND h.id = p.word",
                    ("hue", "place"),
                    key,
                )
                users = _summed(
                    steps,
                    f'SELECT h.side AS side, h."user" AS id, s.hue AS hue, h.n AS n FROM {held} h JOIN {shapes} s'  # noqa: S608  # tables of ours
                    " ON s.side = h.side AND s.id = h.text",
                    ("hue", "n"),
                    key,
                )
                user_colours = _summed(
                    steps,
                    f"SELECT h.side AS side, h.text AS id, p.hue AS hue, h.n AS n FROM {held} h JOIN {users} p"  # noqa: S608  # tables of ours
                    ' ON p.side = h.side AND p.id = h."user"',
                    ("hue", "n"),
                    key,
                )
                found, now = _differing(evidence, sides.texts, shapes, user_colours)
                if found is not None or now == kinds:
                    return found
                kinds = now
                work.drop(words)
                words = _summed(
                    work,
                    "SELECT p.side AS side, p.word AS id, s.hue AS shape, c.hue AS users, p.position AS place"  # noqa: S608  # tables of ours
                    f" FROM {places} p JOIN {shapes} s ON s.side = p.side AND s.id = p.text"
                    f" JOIN {user_colours} c ON c.side = p.side AND c.id = p.text",
                    ("shape", "users", "place"),
                    key,
                )
    return None


def _lay_out(evidence: Evidence, work: Workspace, owner: str | None, owners: str) -> _Sides:
    """Make the tables that are compared.

    Queries that differ in punctuation alone are one text, as they are in the release.
    """
    released = evidence.released
    with evidence.log.workspace() as steps:
        digested = steps.map(f"SELECT query FROM {released} GROUP BY query", _digested, _TEXTS)  # noqa: S608  # a table of ours
        texts = work.number(
            f"SELECT query, low, high FROM {digested}",  # noqa: S608  # a table of ours
            ("low", "high"),
            "text",
            even=True,
            name="released texts",
        )
        steps.drop(digested)
        placed = steps.map(f"SELECT query, text FROM {texts}", _placed, _PLACES, "released places")  # noqa: S608  # a table of ours
        (words,) = steps.row("SELECT count(*) AS n FROM query_terms")
        digested = steps.map_groups(
            f"SELECT query_id % {words // _PART + 1} AS part, query_id, position, word_id FROM query_terms",  # noqa: S608  # a checked number
            "part",
            _sequences,
            _SEQUENCES,
        )
        sequences = steps.number(
            f"SELECT query_id, low, high FROM {digested}",  # noqa: S608  # a table of ours
            ("low", "high"),
            "text",
            even=True,
            name="texts of the log",
        )
        steps.drop(digested)
        places = work.table(
            "SELECT 0 AS side, o.text AS text, CAST(t.position AS BIGINT) AS position,"  # noqa: S608  # tables of ours
            " CAST(t.word_id AS BIGINT) AS word FROM query_terms t"
            f" JOIN (SELECT text, min(query_id) AS query_id FROM {sequences} GROUP BY text) AS o"
            f" ON o.query_id = t.query_id UNION ALL SELECT 1 AS side, text, position, word FROM {placed}",
            "places",
        )
        mine, theirs = (f'r."{owner}"', "o.owner") if owner is not None else ("0", "0")
        held = work.table(
            'SELECT side, text, "user", count(*) AS n FROM'  # noqa: S608  # parts of this module
            f' (SELECT 0 AS side, s.text AS text, CAST({theirs} AS BIGINT) AS "user" FROM events e'
            f" JOIN ({owners}) AS o ON o.event_id = e.event_id JOIN {sequences} s"
            f' ON s.query_id = e.query_id UNION ALL SELECT 1 AS side, t.text AS text, CAST({mine} AS BIGINT) AS "user"'
            f' FROM {released} r JOIN {texts} t ON t.query = r.query) AS sides GROUP BY side, text, "user"',
            "texts of users",
        )
    return _Sides(places, held, texts)


def _summed(work: Workspace, rows: str, of: tuple[str, ...], key: bytes) -> Table:
    """Side, id and hue: the sum of keyed digests of some columns, which distinguishes one set of them from another."""
    schema = pa.schema([("side", pa.int32()), ("id", pa.int64()), ("digest", pa.int64())])
    digested = work.map(rows, _keyed(key, of, schema), schema)
    made = work.table(
        f"SELECT side, id, CAST(sum(digest) AS BIGINT) AS hue FROM {digested} GROUP BY side, id",  # noqa: S608  # a table of ours
        "colours",
    )
    work.drop(digested)
    return made


def _keyed(key: bytes, of: tuple[str, ...], schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        words = np.empty((len(batch), 2 + len(of)), np.int64)
        words[:, :2] = np.frombuffer(key, np.int64)
        for at, name in enumerate(of, 2):
            words[:, at] = batch[name].to_numpy()
        starts = np.arange(len(batch), dtype=np.int64) * (8 * words.shape[1])
        low, _ = digests(words.reshape(-1).view(np.uint8), starts, starts + 8 * words.shape[1])
        digest = (low >> np.uint64(64 - _BITS)).view(np.int64)
        columns = [batch["side"].cast(pa.int32()), batch["id"].cast(pa.int64()), pa.array(digest)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return run


def _differing(evidence: Evidence, texts: Table, shapes: Table, user_colours: Table) -> tuple[str | None, int]:
    """A text that the release has more or less often than the log, in words, and how many kinds of texts there are."""
    kinds = (
        "SELECT s.hue AS shape, c.hue AS users, CAST(sum(CASE WHEN s.side = 0 THEN 1 ELSE 0 END) AS BIGINT) AS mine,"  # noqa: S608  # tables of ours
        f" CAST(sum(CASE WHEN s.side = 1 THEN 1 ELSE 0 END) AS BIGINT) AS theirs FROM {shapes} s JOIN {user_colours} c"
        " ON c.side = s.side AND c.id = s.id GROUP BY s.hue, c.hue"
    )
    count, wrong = evidence.work.row(
        "SELECT count(*) AS n, CAST(coalesce(sum(CASE WHEN mine <> theirs THEN 1 ELSE 0 END), 0) AS BIGINT) AS wrong"  # noqa: S608  # parts of this module
        f" FROM ({kinds}) AS k"
    )
    if not wrong:
        return None, count
    row = evidence.first(
        f"SELECT t.query AS query FROM ({kinds}) AS k JOIN {shapes} s ON s.hue = k.shape JOIN {user_colours} c"  # noqa: S608  # parts of this module
        f" ON c.hue = k.users AND c.side = s.side AND c.id = s.id JOIN {texts} t ON t.text = s.id"
        " WHERE s.side = 1 AND k.mine < k.theirs ORDER BY t.query LIMIT 1"
    )
    if row is None:
        return "the release lacks a text of the log", count
    return f"no query of the log has words, events and users where '{row[0]}' has tokens, events and users", count


def _digested(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A digest of each released text."""
    query = batch["query"].cast(pa.string())
    low, high = (half.view(np.int64) for half in digests(*byte_spans(query)))
    return pa.RecordBatch.from_arrays([query, pa.array(low), pa.array(high)], schema=_TEXTS)


def _placed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The token at each position of each text, as a number."""
    parts = pc.split_pattern(batch["query"].cast(pa.string()), " ")
    of_text = Ragged(offsets(pc.list_value_length(parts).to_numpy()))
    digits = "".join(pc.list_flatten(parts).to_pylist())
    token = np.frombuffer(bytes.fromhex(digits), ">i8").astype(np.int64)
    text = batch["text"].cast(pa.int64()).take(pa.array(of_text.owners))
    return pa.RecordBatch.from_arrays([text, pa.array(of_text.within), pa.array(token)], schema=_PLACES)


def _sequences(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A digest of the words of each query, in their order."""
    query, position = batch["query_id"].to_numpy(), batch["position"].to_numpy()
    order = np.lexsort([position, query])
    query = query[order].astype(np.int64)
    word = batch["word_id"].to_numpy()[order].astype(np.int64)
    start = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
    end = np.append(start[1:], len(query))
    low, high = (half.view(np.int64) for half in digests(word.view(np.uint8), 8 * start, 8 * end))
    return pa.RecordBatch.from_arrays([pa.array(query[start]), pa.array(low), pa.array(high)], schema=_SEQUENCES)
