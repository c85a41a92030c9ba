"""How a verb ends: its exit code, and what `--json` says about a failure."""

from typing import Any, Literal, NoReturn

import typer

from queryveil.errors import Code

Ending = Code | Literal["not-found", "usage", "bug", "stopped"]
"""What `code` of an error can be on the command line."""

EXITS: dict[Ending, int] = {
    "refuted": 1,
    "not-found": 1,
    "bad-input": 2,
    "usage": 2,
    "bug": 3,
    "exists": 4,
    "empty": 5,
    "policy-not-met": 6,
    "other-log": 7,
    "stopped": 130,
}
"""The exit code of each failure; docs/cli.md has the same table."""


def failure(code: Ending | None, sentence: str) -> dict[str, Any]:
    """What the object that `--json` prints says about a failure; nothing if all is well."""
    return {} if code is None else {"error": {"code": code, "message": sentence}}


def finish(code: Ending | None) -> NoReturn:
    """End the verb, after it printed what it found."""
    raise typer.Exit(0 if code is None else EXITS[code])
