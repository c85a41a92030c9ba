"""Every promise has a headline of at most fifteen words, with its numbers, beside its exact statement."""

import pytest

from queryveil import claims
from queryveil.claims.private import NoisyStep

K = 1234567
SESSIONS = claims.Sessions(gap=30, events=10)
TREE = {"users": K, "taxonomy": "wordnet", "tree": "0" * 64}
TABLE = {"columns": ("query", "country", "device", "period"), "period": "day", "totals": ("query", "country")}
STEP = NoisyStep(of="queries", noise="laplace", d=20, scale=20.0, threshold=300)
EVERY = [
    claims.AffineSessions(
        users=K, theta=0.9, vectors="words", concept_min_users=65, max_new_users=1, sessions=SESSIONS
    ),
    claims.AffineUsers(
        users=K, theta=0.9, vectors="words", concept_min_users=65, min_term_users=K, min_query_users=2, max_new_users=1
    ),
    claims.AllUsers(),
    claims.AllowedQueries(listed="allow.txt"),
    claims.BagUsers(**TREE),
    claims.BlockedWords(listed="block.txt"),
    claims.CellUsers(**TABLE, users=K),
    claims.ClickedSites(documents=K, sites=2),
    claims.ClickedUsers(users=K),
    claims.CombinationUsers(users=K, columns=("country", "device", "language", "age", "browser")),
    claims.ConceptUsers(**TREE),
    *(claims.CountedRows(**TABLE, users=2, base=base) for base in (None, 10)),
    claims.DecidedQueries(listed="decisions.jsonl"),
    claims.DifferentialPrivacy(epsilon=0.6931471805599453, delta=1e-06, steps=(STEP,)),
    claims.DisjointClicks(),
    claims.FragmentUsers(users=K, words=1),
    claims.FragmentUsers(users=K, words=2, noun_phrases=True, counted_on=True, listed="list.tsv"),
    claims.HashedWords(),
    claims.HashedWords(sessions=SESSIONS),
    claims.HiddenRows(**TABLE, users=K),
    claims.IssuedQueries(),
    *(claims.LinkedEvents(sessions=one, items=items) for one in (None, SESSIONS) for items in (True, False)),
    claims.PartOfLog(),
    claims.PrivateCounts(epsilon=0.6931471805599453, delta=1e-06, steps=(STEP,), columns=("query",)),
    claims.QuerySpelling(max_characters=100, max_terms=10, no_digits=True, no_at=True),
    claims.QuerySpelling(no_at=True),
    claims.QuerySpelling(max_terms=10, no_at=True, lifted="decisions.jsonl"),
    claims.QueryUsers(users=K),
    *(claims.RecordQueries(users=K, compact=compact) for compact in (True, False)),
    *(claims.RecordUsers(users=K + 1, compact=compact) for compact in (True, False)),
    claims.RoundedCounts(base=5),
    claims.RowUsers(users=K, columns=("url", "device", "country")),
    *(claims.RowUsers(users=K, columns=columns, clicked=True) for columns in (("url",), ("url", "rank"))),
    claims.TermUsers(users=K),
    claims.TimesRounded(unit="week"),
    *(claims.ViewUsers(users=K, ranks=ranks) for ranks in (True, False)),
]


def test_every_kind_of_claim_is_here():
    assert {type(claim) for claim in EVERY} == set(claims.CLAIMS.values())


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.kind)
def test_a_headline_has_at_most_fifteen_words(claim):
    for sentence in (claim.headline, claim.statement):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert "{" not in sentence
    assert len(claim.headline.split()) <= 15
    # A sentence that is short enough is its own headline.
    assert (claim.headline == claim.statement) <= (len(claim.statement.split()) <= 15)


def test_headlines_name_the_number_of_users():
    assert all(
        str(K) in claim.headline
        for claim in EVERY
        if getattr(claim, "users", None) == K and claim.kind != "record-queries"
    )
    assert "0.693147" in next(claim for claim in EVERY if claim.kind == "differential-privacy").headline
