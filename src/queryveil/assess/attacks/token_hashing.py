"""Reading hashed words again, by how often they occur and beside what.

Ravi Kumar, Jasmine Novak, Bo Pang, Andrew Tomkins, On anonymizing query logs via token-based hashing, WWW 2007. Their
attacker has a public log of the same kind. The more often a token occurs the higher its rank, and the word of that rank
in the public log is the first guess; the tokens that stand beside it correct the guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Floats, Ints, Longs, sampled
from queryveil.assess.attacks.background_knowledge import PEOPLE
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError, anonymity_loss, share
from queryveil.assess.attacks.token_texts import Texts, guessed, released_texts, same_words, typed_texts
from queryveil.assess.attacks.view import once
from queryveil.errors import QueryveilError
from queryveil.kernels.linkage import chances
from queryveil.kernels.postings import postings
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release, scrub_again
from queryveil.text.show import percent

Digests = NDArray[np.uint64]

MOST = 300
"""How many tokens are attacked, the most frequent ones."""


@dataclass(frozen=True)
class Guesses:
    """How many tokens were guessed right.

    Attributes:
        tokens: The share of the distinct tokens of the release.
        occurrences: The share of all that stands in the release, token by token.
    """

    tokens: float
    occurrences: float


@dataclass(frozen=True, eq=False)
class TokenAttack:
    """What an attacker makes of a hashed release.

    Attributes:
        guesses: A row for each attacked token, most frequent first: `token`, `occurrences`, the `word` that is guessed,
            and the word `by_frequency` alone.
        recovered: How many guesses are right; None without the truth.
        by_frequency: The same by frequency alone, which is the baseline.
    """

    guesses: pa.Table
    recovered: Guesses | None
    by_frequency: Guesses | None


def token_frequency_attack(
    release: Release, reference: QueryLog, truth: Mapping[str, str] | None = None, *, most: int = 1000
) -> TokenAttack:
    """Guess the words behind the most frequent tokens of a release.

    Tokens and words are aligned by frequency first. Then, round by round, a third more of the most frequent tokens are
    trusted, and each token gets the word that occurs as often and stands beside the trusted ones as it does, so that
    all together agree best.

    Args:
        release: A release of hashed words.
        reference: A log of the same kind that the attacker has, on this machine.
        truth: The word of each token, to count how many guesses are right.
        most: How many tokens are attacked, at most.

    Raises:
        QueryveilError: If the release has no hashed words.
    """
    if release.manifest.kind != "tokens":
        raise QueryveilError(f"The attack is on hashed words, and the release was made by '{release.manifest.method}'.")
    log = local(reference, "token_frequency_attack")
    tokens = released_texts(release)
    words = typed_texts(log, log.events_per_query)
    guesses = guessed(tokens, words, most)
    return TokenAttack(guesses, _share(guesses, "word", tokens, truth), _share(guesses, "by_frequency", tokens, truth))


def token_hashing(
    release: Release, log: QueryLog, *, reference: QueryLog | None = None, seed: int = 0, most: int = MOST
) -> Finding:
    """How many of the most frequent tokens are read by one who has a log of the same kind.

    What is right is known without the key: a word and a token that occur as often, in the same places of texts with the
    same company, and no others that do so, belong together. A token without such a word counts as not read.

    Args:
        release: A release of hashed words.
        log: Its log.
        reference: The log that the attacker has. By default what a random half of the users typed; the tokens are
            those of the other half, or of all if it is not known who is who, which makes the attack easier.
        seed: Random seed.
        most: How many tokens are attacked, at most.
    """
    read = _reading(release, log)
    here = read.hashed
    rng = np.random.default_rng(seed)
    others = None
    if reference is None:
        half = rng.permutation(read.log.n_users)[: (read.log.n_users + 1) // 2]
        events = here.engine.fetch("SELECT user_id, query_id FROM events")
        theirs = events["query_id"].to_numpy()[np.isin(events["user_id"].to_numpy(), read.numbers(half))]
        known = typed_texts(here, np.bincount(theirs, minlength=here.n_queries))
        setting = "with half of the log"
        if "user" in release.schema.names and release.pseudonyms is not None and release.log is log:
            who = read.log.engine.fetch(f'SELECT user_id, "user" FROM {release.pseudonyms}')
            others = who["user"].combine_chunks().filter(pa.array(~np.isin(who["user_id"].to_numpy(), half)))
            setting = "with the log of other users"
    else:
        other = local(reference, "token_hashing")
        known, setting = typed_texts(other, other.events_per_query), "with another log"
    tokens = read.tokens if others is None else released_texts(release, others)
    guesses = guessed(tokens, known, most)
    if not len(guesses):
        raise InapplicableError("there is no token, or no word to guess")
    truth = read.truth
    words = pc.fill_null(truth["word"].take(pc.index_in(guesses["token"], value_set=truth["token"])), "")
    right = _equal(guesses["word"], words)
    frequency = _equal(guesses["by_frequency"], words)
    # The mean over all permutations, which is known: no word is guessed twice.
    permuted = int(pc.is_in(words, value_set=guesses["word"]).to_numpy().sum()) / len(guesses) ** 2
    text = int(guesses["occurrences"].to_numpy()[right].sum()) / int(tokens.occurrences.sum())
    return Finding(
        attack="token_hashing",
        setting=setting,
        number="frequent tokens whose words are read, by how often and beside what they occur",
        unit="share",
        estimate=share(int(right.sum()), len(guesses)),
        baseline=1 / max(int((known.occurrences > 0).sum()), 1),
        baseline_text="a word of the attacker's log at random",
        control=Estimate(permuted, permuted, permuted),
        control_text="the same guesses permuted among the tokens, on average",
        trials=len(guesses),
        beside=f"{percent(text)} of all that was typed; by how often they occur alone"
        f" {percent(float(frequency.mean()))} of these tokens",
        details={"of_text": text, "by_frequency": float(frequency.mean())},
        loss=anonymity_loss(float(right.mean()), 1.0, permuted),
    )


def token_matching(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """How many tokens are read by one who has the log itself.

    A word and a token belong together if they occur as often, in the same places of texts with the same company, and
    no others do so.

    Args:
        release: A release of hashed words.
        log: Its log.
        seed: Random seed, of the control.
    """
    read = _reading(release, log)
    if not int(read.tokens.occurrences.sum()):
        raise InapplicableError("there is no token, or no word to guess")
    words, total = read.words, read.hashed.stats.words
    item = np.random.default_rng(seed).permutation(words.item)
    permuted = same_words(read.tokens, replace(words, item=item))
    found = read.tokens.occurrences[pc.index_in(read.truth["token"], value_set=read.tokens.text).to_numpy()]
    text = int(found.sum()) / int(read.tokens.occurrences.sum())
    return Finding(
        attack="token_hashing",
        setting="with the log itself",
        number="tokens whose words are read, by one who has the log",
        unit="share",
        estimate=share(len(read.truth), total),
        baseline=1 / total,
        baseline_text="a word of the log at random",
        control=share(len(permuted), total),
        control_text="the same with the words of the log permuted among their places",
        trials=total,
        beside=f"{percent(text)} of all that was typed",
        details={"of_text": text},
        loss=anonymity_loss(len(read.truth) / total, 1.0, max(1, len(permuted)) / total),
    )


def linked_by_words(release: Release, log: QueryLog, *, seed: int = 0, people: int = PEOPLE) -> tuple[Floats, Floats]:
    """The probability that each released user is linked to their record by the words that one who has the log reads.

    As in `queryveil.assess.measures.record_linkage`, with words that are read in the place of queries.

    Args:
        release: A release of hashed words that knows who is who.
        log: Its log.
        seed: Random seed.
        people: Most people that it is tried on; of more, a random sample.

    Returns:
        The probabilities, and those with records permuted among these users.
    """
    read = _reading(release, log)
    rng = np.random.default_rng(seed)
    who = read.log.engine.fetch(f'SELECT user_id, "user" AS record FROM {release.pseudonyms} ORDER BY record')
    some = sampled(np.arange(len(who)), people, rng)
    # One user stands behind each record.
    record, user = who["record"].to_numpy()[some], read.numbers(who["user_id"].to_numpy()[some])
    held, issued = _records(release, read.truth["token"], record), _users(read.hashed, read.truth["word"])
    n, start = read.hashed.n_users, np.arange(len(some) + 1)
    post = postings(issued[0], issued[1], issued[2].astype(np.int32), len(read.truth), np.ones(n, np.bool_))
    found = [chances(*held, post, start, one.astype(np.int32), n) for one in (user, rng.permutation(user))]
    return found[0], found[1]


def _records(release: Release, tokens: pa.ChunkedArray, record: Longs) -> tuple[Longs, Ints, Longs]:
    """Which of some tokens each of some records has, and how often."""
    texts = [
        pa.table({"user": batch["user"].cast(pa.int64()), "query": pc.fill_null(batch["query"], "")})
        for batch in release.batches()
    ]
    rows = pa.concat_tables(texts).filter(pc.field("user").isin(pa.array(record)))
    parts = pc.split_pattern(rows["query"].combine_chunks(), " ")
    place = np.searchsorted(record, rows["user"].to_numpy())
    owner = np.repeat(place, pc.list_value_length(parts).to_numpy())
    token = pc.fill_null(pc.index_in(pc.list_flatten(parts), value_set=tokens), -1).to_numpy()
    return _bags(owner, token, np.ones(len(owner), np.int64), len(record), len(tokens))


def _users(log: LocalLog, words: pa.ChunkedArray) -> tuple[Longs, Ints, Longs]:
    """Which of some words each user of a log typed, and how often."""
    searches, tokens = Searches.of(log), log.tokens
    size = tokens.sizes[searches.query]
    number = pc.fill_null(pc.index_in(tokens.text.cast(pa.string()), value_set=words), -1).to_numpy()
    word = number[tokens.word[tokens.positions(searches.query)]]
    return _bags(np.repeat(searches.owners, size), word, np.repeat(searches.times, size), log.n_users, len(words))


def _bags(owner: Longs, item: Longs, times: Longs, owners: int, items: int) -> tuple[Longs, Ints, Longs]:
    """Where the distinct items of each owner start, the items, and how often each is there; without items below 0."""
    there = item >= 0
    both, place = np.unique(owner[there] * items + item[there], return_inverse=True)
    total = np.zeros(len(both), np.int64)
    np.add.at(total, place, times[there])
    start = np.searchsorted(both, np.arange(owners + 1) * items)
    return start, (both % max(items, 1)).astype(np.int32), total


@dataclass(frozen=True, eq=False)
class _Reading:
    """A hashed release beside its log.

    Attributes:
        log: The log.
        hashed: The log as it was hashed, which may have been scrubbed first.
        tokens: The texts of the release.
        words: The texts of the log as it was hashed.
        truth: What belongs together, as `same_words` finds it.
    """

    log: LocalLog
    hashed: LocalLog
    tokens: Texts
    words: Texts
    truth: pa.Table

    def numbers(self, users: Longs) -> Longs:
        """The ids in the log as it was hashed of those of some users of the log who are still there."""
        names = self.log.user_text.take(pa.array(users))
        return np.asarray(pc.drop_null(pc.index_in(names, value_set=self.hashed.user_text)).to_numpy(), np.int64)


def _reading(release: Release, log: QueryLog) -> _Reading:
    """What can be read in a release."""
    if release.manifest.kind != "tokens":
        raise InapplicableError("the release has no hashed words")

    def read() -> _Reading:
        here = hashed = local(log, "An attack on hashed words")
        if release.manifest.scrub is not None and log.stats.scrub is None:
            hashed = local(scrub_again(release, log), "An attack on hashed words")
        tokens, words = released_texts(release), typed_texts(hashed, hashed.events_per_query)
        return _Reading(here, hashed, tokens, words, same_words(tokens, words))

    return once("tokens", release, log, read)


def _equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    return np.asarray(pc.equal(one, other).to_numpy(), np.bool_)


def _share(guesses: pa.Table, column: str, tokens: Texts, truth: Mapping[str, str] | None) -> Guesses | None:
    if truth is None:
        return None
    pairs = zip(guesses["token"].to_pylist(), guesses[column].to_pylist(), strict=True)
    right = np.array([truth.get(token) == word for token, word in pairs], np.bool_)
    occurrences = guesses["occurrences"].to_numpy()
    return Guesses(
        float(right.sum() / max(len(tokens.text), 1)),
        float(occurrences[right].sum() / max(tokens.occurrences.sum(), 1)),
    )
