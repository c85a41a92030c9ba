"""What functions of this part do with their arguments first."""

from collections.abc import Iterable
from typing import TypeVar

from queryveil.errors import QueryveilError, parameter

T = TypeVar("T", str, int, float)


def several(given: T | Iterable[T]) -> list[T]:
    """What was given, as a list; a single text or number is a list of one."""
    if isinstance(given, str | int | float):
        return [given]
    return list(given)


def at_least_1(owner: str, name: str, value: int, *, flag: str | None = None) -> None:
    """Refuse a number of things to do that is below 1.

    Args:
        owner: The function that takes the argument.
        name: The argument's name.
        value: Its value.
        flag: The option, where it has another name.

    Raises:
        QueryveilError: If it is.
    """
    if value < 1:
        raise QueryveilError(
            f"{parameter(owner, name, flag=flag)} must be a whole number of at least 1. Got {value} instead."
        )
