"""A statement may say who reviewed the release; one that does not is what it was before there were reviews."""

import json

import pytest

import queryveil as qv
from queryveil.assess.signing import Review
from tests.assess.signing.signed import enveloped, holds, spelt, stated


def test_a_statement_says_who_reviewed_and_when(copy):
    review = Review.by(" Ann Able ", "Looked at <all> of it.", "2026-05-01")
    qv.sign(copy / "release", copy / "key", review=review, overwrite=True)
    assert holds(copy)
    said = {"name": "Ann Able", "date": "2026-05-01", "comment": "Looked at <all> of it."}
    assert stated(copy / "release.statement.json")["predicate"]["review"] == said
    found = qv.verify_signature(copy / "release", copy / "key.pub")
    assert "Reviewed by Ann Able on 2026-05-01. Comment: Looked at <all> of it." in found.statement.predicate.sentences


def test_a_statement_without_a_review_does_not_mention_any(copy):
    statement = stated(copy / "release.statement.json")
    assert "review" not in statement["predicate"]
    statement["predicate"]["review"] = None  # a second spelling of the same
    assert not holds(copy, enveloped(copy, spelt(statement)))


@pytest.mark.parametrize("change", [{"date": "yesterday"}, {"name": ""}, {"more": 1}, {"name": None}])
def test_a_review_of_another_form_is_refused_even_when_it_is_signed(copy, change):
    statement = stated(copy / "release.statement.json")
    review = {"name": "Ann", "date": "2026-05-01", "comment": ""}
    statement["predicate"]["review"] = review
    assert holds(copy, enveloped(copy, spelt(statement)))
    statement["predicate"]["review"] = json.loads(json.dumps(review)) | change
    assert not holds(copy, enveloped(copy, spelt(statement)))


@pytest.mark.parametrize(
    "given", [(" ",), ("A" * 1001,), ("Ann", "x" * 1001), ("Ann", "", "2026-5-1"), ("Ann", "", "2026-02-30")]
)
def test_a_review_that_is_none_is_refused(given):
    with pytest.raises(qv.QueryveilError, match="A review has a name"):
        Review.by(*given)
