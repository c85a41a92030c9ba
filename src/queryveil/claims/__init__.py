"""What a release promises, each promise with the check that could refute it.

The checks read the released table as it stands in the file and the original log, and recompute each promise in the most
literal way. They share nothing with the methods that made the release.
"""

from typing import Annotated

from pydantic import Field

from queryveil.claims.affine import AffineUsers
from queryveil.claims.base import Claim, Columns, Verdict
from queryveil.claims.content import PartOfLog, QuerySpelling, TimesRounded
from queryveil.claims.users import CombinationUsers, QueryUsers, RowUsers, TermUsers

AnyClaim = Annotated[
    AffineUsers | PartOfLog | QueryUsers | RowUsers | CombinationUsers | TermUsers | QuerySpelling | TimesRounded,
    Field(discriminator="kind"),
]

__all__ = [
    "AffineUsers",
    "AnyClaim",
    "Claim",
    "Columns",
    "CombinationUsers",
    "PartOfLog",
    "QuerySpelling",
    "QueryUsers",
    "RowUsers",
    "TermUsers",
    "TimesRounded",
    "Verdict",
]
