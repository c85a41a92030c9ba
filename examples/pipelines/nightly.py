"""One night of a pipeline: run a command of queryveil, and decide by its exit code what happens next.

Any scheduler can call this; `airflow_dag.py` and `dagster_assets.py` do. It needs nothing but the command itself.
"""

import json
import subprocess
from typing import Any

NOTHING_TO_RELEASE = 5
"""The exit code of a release that would be empty: on a quiet day this is no failure."""


class PipelineError(RuntimeError):
    """A command that failed; the message has its code and its sentence, and nothing of the log."""


def queryveil(*words: str) -> dict[str, Any] | None:
    """Run a command with `--json`.

    Returns:
        What it prints; None if nothing can be released.

    Raises:
        PipelineError: If it fails in any other way, such as a release that is refuted or does not meet the policy.
    """
    command = ["queryveil", *words, "--json", "--log-format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # words of this file
    if done.returncode == NOTHING_TO_RELEASE:
        return None
    if not done.stdout:  # killed, so there was no time to say why
        raise PipelineError(f"queryveil {words[0]} ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    if done.returncode != 0:
        raise PipelineError(f"queryveil {words[0]}: {found['error']['code']}: {found['error']['message']}")
    return found


def publish(log: str, release: str, recipe: str = "publish-queries") -> dict[str, Any] | None:
    """Make the release of a day; returns its manifest, or None if nothing can be released."""
    made = queryveil("anonymize", log, "--recipe", recipe, "--output", release, "--overwrite")
    return None if made is None else made["manifest"]


def check(log: str, release: str) -> int:
    """Verify a release against its log; returns how many checks hold."""
    found = queryveil("verify", release, "--original", log)
    return 0 if found is None else len(found["verdicts"])
