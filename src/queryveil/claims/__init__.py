"""What a release promises, each promise with the check that could refute it.

The checks read the released table as it stands in the file and the original log, and recompute each promise in the most
literal way. They share nothing with the methods that made the release.
"""

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from queryveil.claims.affine import AffineUsers
from queryveil.claims.affine_sessions import AffineSessions
from queryveil.claims.base import Claim, Columns, Verdict
from queryveil.claims.clicks import ClickedSites, DisjointClicks
from queryveil.claims.content import PartOfLog, QuerySpelling, TimesRounded
from queryveil.claims.counted import CellUsers, CountedRows, HiddenRows, RoundedCounts
from queryveil.claims.fragments import FragmentUsers
from queryveil.claims.generalized import BagUsers, ConceptUsers
from queryveil.claims.hashed import HashedWords
from queryveil.claims.linked import LinkedEvents, Sessions
from queryveil.claims.listed import AllowedQueries, BlockedWords, DecidedQueries
from queryveil.claims.private import DifferentialPrivacy
from queryveil.claims.private_counts import PrivateCounts
from queryveil.claims.records import AllUsers, IssuedQueries, RecordQueries, RecordUsers
from queryveil.claims.users import CombinationUsers, QueryUsers, RowUsers, TermUsers
from queryveil.claims.views import ClickedUsers, ViewUsers

CLAIMS: dict[str, type[Claim]] = {
    claim.model_fields["kind"].default: claim
    for claim in (
        AffineSessions,
        AffineUsers,
        AllUsers,
        AllowedQueries,
        BagUsers,
        BlockedWords,
        CellUsers,
        ClickedSites,
        ClickedUsers,
        CombinationUsers,
        ConceptUsers,
        CountedRows,
        DecidedQueries,
        DifferentialPrivacy,
        DisjointClicks,
        FragmentUsers,
        HashedWords,
        HiddenRows,
        IssuedQueries,
        LinkedEvents,
        PartOfLog,
        PrivateCounts,
        QuerySpelling,
        QueryUsers,
        RecordQueries,
        RecordUsers,
        RoundedCounts,
        RowUsers,
        TermUsers,
        TimesRounded,
        ViewUsers,
    )
}
"""By kind. A manifest holds no other."""


def _of_its_kind(given: object) -> object:
    """A claim of a manifest that was read, which may state anything."""
    if isinstance(given, Claim):
        return given
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in CLAIMS:
        raise ValueError("there is no such claim")
    return CLAIMS[kind].model_validate(given)


AnyClaim = Annotated[SerializeAsAny[Claim], BeforeValidator(_of_its_kind)]
"""A claim in a manifest."""

__all__ = [
    "CLAIMS",
    "AffineSessions",
    "AffineUsers",
    "AllUsers",
    "AllowedQueries",
    "AnyClaim",
    "BagUsers",
    "BlockedWords",
    "CellUsers",
    "Claim",
    "ClickedSites",
    "ClickedUsers",
    "Columns",
    "CombinationUsers",
    "ConceptUsers",
    "CountedRows",
    "DecidedQueries",
    "DifferentialPrivacy",
    "DisjointClicks",
    "FragmentUsers",
    "HashedWords",
    "HiddenRows",
    "IssuedQueries",
    "LinkedEvents",
    "PartOfLog",
    "PrivateCounts",
    "QuerySpelling",
    "QueryUsers",
    "RecordQueries",
    "RecordUsers",
    "RoundedCounts",
    "RowUsers",
    "Sessions",
    "TermUsers",
    "TimesRounded",
    "Verdict",
    "ViewUsers",
]
