"""Results about a log and its release, read again without trust, and small things that jobs share."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from queryveil.assess.attacks import Findings
from queryveil.assess.comparison import Board
from queryveil.assess.evaluation import Evaluation
from queryveil.assess.grid import Grid
from queryveil.assess.policy import Judgement
from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.log import LocalLog
from queryveil.log.sessions import Linking, make_sessions
from queryveil.verification import Verification


@dataclass(frozen=True)
class Audit:
    """A release that is looked at together with its log; nothing is changed.

    Attributes:
        release: Its folder.
        user_map: The file of its user map, for attacks that need to know who is who.
        certificate: The file of its certificate.
        lists: The lists that it was made with.
    """

    release: str
    user_map: str | None = None
    certificate: str | None = None
    lists: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """What was found about a release, as far as it was looked for."""

    verification: Verification | None = None
    evaluation: Evaluation | None = None
    findings: Findings | None = None
    judgement: Judgement | None = None
    statement: Path | None = None


def count_sessions(log: LocalLog) -> int | None:
    """How many sessions a log has; None if it has no times."""
    if not log.has_times:
        return None
    with log.workspace() as work:
        made = make_sessions(work, Linking("session"))
        (found,) = work.row(f"SELECT count(DISTINCT session) AS n FROM {made}")  # noqa: S608  # a table of ours
    return int(found)


def kept_grid(folder: Path, log: LocalLog) -> Grid | None:
    """The tables behind the sliders, if they are of this log and this version."""
    try:
        return Grid.load(folder, log)
    except QueryveilError:
        return None  # they are made again


def kept_findings(file: Path, manifest: str) -> Findings | None:
    """What attacks found in the release with this manifest."""
    try:
        given = json.loads(file.read_bytes())
        if given["manifest_sha256"] != manifest:
            return None
        for one in given["findings"]:
            one.pop("details", None)
        return TypeAdapter(Findings).validate_python(given)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def private_write(file: Path, content: bytes) -> None:
    """Write a small file whole, for its owner alone."""
    write_whole(file, content, overwrite=True, private=True)


def compared(board: Board) -> str:
    """How far a comparison is."""
    done = sum(state not in ("waiting", "at work") for state in board.states)
    now = [one.name for one, state in zip(board.configurations, board.states, strict=True) if state == "at work"]
    return f"{done} of {len(board.states)} releases{''.join(f'; {name}' for name in now)}"
