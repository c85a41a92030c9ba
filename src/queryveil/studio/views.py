"""What a screen hands to its template, and what it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from queryveil.errors import QueryveilError
from queryveil.studio.session import Session

Form = Mapping[str, str]
"""The fields of a form, by name."""


@dataclass(frozen=True)
class View:
    """A page, or a part of one.

    Attributes:
        template: Its template.
        given: What the template shows.
        after: The kinds of jobs after which the page is to be shown again.
    """

    template: str
    given: dict[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()


Handler = Callable[[Session, Form], View]


def number(form: Form, name: str, default: int | None = None) -> int:
    """A whole number of a form."""
    text = form.get(name, "")
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    if default is None or text:
        raise QueryveilError(f"'{name}' must be a whole number.")
    return default
