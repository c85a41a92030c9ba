"""What a publisher says about a release: its title, where it comes from, whom to ask, and dates. Nobody checks it."""

import datetime
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from queryveil.errors import QueryveilError, did_you_mean, parameter


def _text(value: str) -> str:
    if not value.isprintable() or value != value.strip():
        raise ValueError("a text on one line")
    return value


def _date(value: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise ValueError("a date")
    return datetime.date.fromisoformat(value).isoformat()


def _span(value: str) -> str:
    first, slash, last = value.partition("/")
    if not slash or _date(first) > _date(last):
        raise ValueError("two dates")
    return value


_EXPECTED = {
    "published": "a date such as 2026-05-01",
    "covers": "two dates such as 2026-01-01/2026-03-31, the earlier one first",
}
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_text)]


class About(BaseModel):
    """What the publisher of a release says about it: no check can confirm it.

    Attributes:
        title: What the release is called.
        source: Where the log comes from, such as the search engine and the market.
        contact: Whom to ask, such as an address for mail.
        published: The day of publication, such as `2026-05-01`.
        covers: The first and the last day of the log, such as `2026-01-01/2026-03-31`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    title: Line | None = None
    source: Line | None = None
    contact: Line | None = None
    published: Annotated[str, AfterValidator(_date)] | None = None
    covers: Annotated[str, AfterValidator(_span)] | None = None

    @classmethod
    def of(cls, **given: str | None) -> "About":
        """What a publisher says, checked.

        Args:
            **given: Any of the attributes.

        Raises:
            QueryveilError: If a text is too long or has control characters, or a date is none.
        """
        unknown = next((name for name in given if name not in cls.model_fields), None)
        if unknown is not None:
            raise QueryveilError(f"About.of has no parameter '{unknown}'; {did_you_mean(unknown, cls.model_fields)}.")
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            expected = _EXPECTED.get(name, "one line of 1 to 200 printable characters")
            raise QueryveilError(f"{parameter('About.of', name)} takes {expected}; write it so.") from None

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What is given, without the title: the label and the text."""
        found = {
            "source": self.source,
            "contact": self.contact,
            "published": self.published,
            "covers": None if self.covers is None else self.covers.replace("/", " to "),
        }
        return [(name, text) for name, text in found.items() if text is not None]
