"""What functions of this part do with their arguments first."""

from collections.abc import Iterable
from numbers import Integral
from typing import TypeVar

from queryveil.errors import QueryveilError, parameter

T = TypeVar("T", str, int, float)


def several(given: T | Iterable[T]) -> list[T]:
    """What was given, as a list; a single text or number is a list of one."""
    if isinstance(given, str | int | float):
        return [given]
    return list(given)


def at_least(least: int, owner: str, name: str, *values: object, flag: str | None = None) -> None:
    """Refuse values of an argument that are too small, or no whole numbers.

    Args:
        least: The smallest that is allowed.
        owner: The function that takes the argument.
        name: The argument's name.
        *values: Its value, or all of them.
        flag: The option, where it has another name.

    Raises:
        QueryveilError: If one is.
    """
    wrong = next((value for value in values if not isinstance(value, Integral) or value < least), None)
    if wrong is not None:
        named = parameter(owner, name, flag=flag)
        raise QueryveilError(f"{named} must be a whole number of at least {least}. Got {wrong!r} instead.")
