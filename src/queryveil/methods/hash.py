"""Keyed hashing of words: every word becomes a token. This is not anonymous; it is here for comparison.

Ravi Kumar, Jasmine Novak, Bo Pang, Andrew Tomkins, On anonymizing query logs via token-based hashing, WWW 2007. They
show how to find the word behind a token.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.claims import HashedWords
from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import claimed_sessions
from queryveil.release import Release
from queryveil.release.making import of_texts
from queryveil.text.arrays import byte_spans, from_offsets

BYTES = 8
"""How many bytes of an HMAC-SHA256 are kept; a token is twice as many hex digits."""
LEAST_KEY = 16
"""Fewest bytes of a key from a file."""
MOST_KEY = 4096
"""Most bytes of it: a longer file is probably not a key."""
_PART = 2_000_000
"""About how many words are joined at once."""
_BLOCK = 64
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
_KEPT = pa.schema([("word_id", pa.int64()), ("token", pa.int64())])
_TEXTS = pa.schema([("query_id", pa.int64()), ("query", pa.string()), ("low", pa.int64()), ("high", pa.int64())])


class Hash(LinkedMethod):
    """Replace each word of each query by a token, HMAC-SHA256 under a secret key (Kumar et al. 2007).

    This is not anonymization. The same word has the same token wherever it occurs, and the order of words stays.
    Clicks, times, extra columns, punctuation, and queries without a word are dropped.
    """

    makes = "tokens"
    name: ClassVar[str] = "hash"
    plain: ClassVar[str] = (
        "A token stands for each word. This is not anonymous: somebody with a similar log can find out which word a "
        "frequent token stands for."
    )
    summary: ClassVar[str] = "replace each word by a keyed hash (not anonymous; for comparison)"

    key_file: Path | None = Field(
        None, description="file with a secret key of 16 to 4096 bytes; by default a random key that is not kept"
    )

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """Never, because the key is not a parameter."""
        return "never"

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in the manifest, without the key and its file."""
        return super().parameters() | {"key_file": None}

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """One configuration: hashing protects nobody, however events are linked."""
        return [("", {"link": "none"})]

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Hash every word, and release every event with the tokens of its words."""
        key = self._key()
        with log.workspace() as work:
            texts = _hashed_texts(log, work, key)
            (events,) = work.row(
                f"SELECT count(*) AS n FROM events e LEFT JOIN {texts} h ON h.query_id = e.query_id"
                " WHERE h.query_id IS NULL"
            )
            notes = [
                "The key is random and was not kept, so tokens of other releases do not match."
                if self.key_file is None
                else "The key came from a file: releases with the same key have the same tokens and can be joined.",
            ]
            if events:
                notes.append(f"{events:,} events were left out, because their queries have no word.")
            claims = [HashedWords(sessions=claimed_sessions(self.linking))]
            return of_texts(log, texts, linking=self.linking, **self.describe(claims, seed, notes))

    def tokens(self, log: QueryLog) -> pa.Table:
        """The token of each `word` of a log. Keep it secret: it reveals every word of the release.

        Raises:
            QueryveilError: If there is no key file, because a random key is a new one every time.
        """
        if self.key_file is None:
            raise QueryveilError(
                f"Only a key from a file gives the same tokens again; name it with {option('key_file')}."
            )
        words = log.engine.fetch("SELECT word FROM words ORDER BY word")["word"].combine_chunks().cast(pa.string())
        return pa.table({"word": words, "token": token_texts(hashed(self._key(), words))})

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """No query is published as it is, only tokens of its words."""
        words = int(log.tokens.sizes[query_id])
        return [
            Reason("queries are published as they are", False, "a token stands for each word"),
            Reason("the query has a word", words > 0, f"{words}"),
        ]

    def _key(self) -> bytes:
        if self.key_file is None:
            return secrets.token_bytes(32)
        key = _read_key(self.key_file)
        if len(key) < LEAST_KEY:
            raise QueryveilError(
                f"The key in {self.key_file} has {len(key)} bytes, and needs {LEAST_KEY} or more; make one with: "
                f"(umask 077; head -c 32 /dev/urandom > {self.key_file})"
            )
        return key

    def warnings(self, log: QueryLog) -> list[str]:
        """A warning if others can read the key."""
        try:
            mode = 0 if self.key_file is None else self.key_file.stat().st_mode
        except OSError:
            return []  # reading the key raises an error about it
        if not mode & (stat.S_IRGRP | stat.S_IROTH):
            return []
        return [
            f"Warning: others on this machine can read the key file {self.key_file}, and with it every word of the"
            f" release; make it private with: chmod 600 {self.key_file}"
        ]


def _read_key(path: Path) -> bytes:
    """The content of a key file; refuses anything that is not a file, or too long."""
    try:
        # Not blocking: a named pipe would wait until somebody writes into it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise QueryveilError(f"The key file {path} is not a file but a pipe or a device; name a file.")
            key = file.read(MOST_KEY + 1)
    except OSError as error:
        raise QueryveilError(f"The key file {path} cannot be read: {error.strerror}.") from None
    if len(key) > MOST_KEY:
        raise QueryveilError(f"The key file {path} has more than {MOST_KEY:,} bytes; that is not a key.")
    return key


def _hashed_texts(log: QueryLog, work: Workspace, key: bytes) -> Table:
    """For every query with a word the tokens of its words: query_id, query, and the digest of that, low and high.

    Raises:
        QueryveilError: If two words have the same token.
    """
    with log.workspace() as steps:
        tokens = steps.map("SELECT word_id, word FROM words", _hashing(key), _KEPT, "tokens")
        (distinct,) = steps.row(f"SELECT count(*) AS n FROM (SELECT token FROM {tokens} GROUP BY token) AS t")
        if distinct < log.stats.words:
            raise QueryveilError("Two words of the log have the same token under this key; use another key.")
        (words,) = steps.row("SELECT count(*) AS n FROM query_terms")
        return work.map_groups(
            f"SELECT t.query_id % {words // _PART + 1} AS part, t.query_id AS query_id, t.position AS position,"
            f" w.token AS token FROM query_terms t JOIN {tokens} w ON w.word_id = t.word_id",
            "part",
            _put_together,
            _TEXTS,
            "hashed queries",
        )


def hashed(key: bytes, words: pa.Array) -> NDArray[np.int64]:
    """The first bytes of the HMAC-SHA256 of each word, as a number."""
    # By the definition of HMAC (RFC 2104), because `hmac` sets up the key again for each word, which takes longer.
    sha256, size = hashlib.sha256, BYTES
    padded = (sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner, outer = bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)
    made = b"".join(
        [sha256(outer + sha256(inner + word).digest()).digest()[:size] for word in words.cast(pa.binary()).to_pylist()]
    )
    wide = np.zeros((len(words), 8), np.uint8)
    wide[:, 8 - size :] = np.frombuffer(made, np.uint8).reshape(-1, size)
    return wide.view(">i8").ravel().astype(np.int64)


def token_texts(tokens: NDArray[np.int64]) -> pa.Array:
    """Tokens as text."""
    digits = _digits(tokens)
    return from_offsets(np.arange(len(tokens) + 1, dtype=np.int32) * digits.shape[1], digits.ravel())


def _digits(tokens: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The hex digits of each token, in ASCII."""
    data = tokens.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - BYTES :]
    return _HEX[data].view(np.uint8).reshape(len(tokens), 2 * BYTES)


def _hashing(key: bytes) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = [batch["word_id"].cast(pa.int64()), pa.array(hashed(key, batch["word"]))]
        return pa.RecordBatch.from_arrays(found, schema=_KEPT)

    return run


def _put_together(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The tokens of each query as one text, with its digest, by which it is sorted."""
    from queryveil.kernels.digest import digests

    query, position = batch["query_id"].to_numpy(), batch["position"].to_numpy()
    order = np.lexsort([position, query])
    query = query[order].astype(np.int64)
    first = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
    width = 2 * BYTES + 1
    data = np.full((len(query), width), ord(" "), np.uint8)
    data[:, :-1] = _digits(batch["token"].to_numpy()[order])
    # A space after each token except the last of a query.
    ends = np.append(first[1:], len(query)) * width - 1
    offsets = np.append(0, ends - np.arange(len(ends))).astype(np.int32)
    text = from_offsets(offsets, np.delete(data.ravel(), ends))
    low, high = (half.view(np.int64) for half in digests(*byte_spans(text)))
    return pa.RecordBatch.from_arrays([pa.array(query[first]), text, pa.array(low), pa.array(high)], schema=_TEXTS)
