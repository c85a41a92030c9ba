"""One run: a release in a folder of its own, with all that is needed to make it again."""

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from queryveil.log import LocalLog
from queryveil.methods.recipe import RecipeStep
from queryveil.release import MANIFEST
from queryveil.scrubbing.decisions import Decision, write_decisions
from queryveil.studio.jobs import Update
from queryveil.studio.project import DECISIONS
from queryveil.studio.results import private_write
from queryveil.studio.settings import decided_steps, method_of, written_recipe
from queryveil.verification import Verification

RELEASE = "release"


def make_run(
    runs: Path, log: LocalLog, steps: Sequence[RecipeStep], decisions: Sequence[Decision], update: Update
) -> tuple[int, Verification]:
    """Make a release, check it, and keep it in a new folder, which is removed again if that fails.

    Args:
        runs: The folder of all runs.
        log: The log.
        steps: What to do.
        decisions: What the reviewer decided.
        update: Called with what is being done.

    Returns:
        The number of the run, and what the verifier found.
    """
    runs.mkdir(0o700, exist_ok=True)
    number = 1 + max((int(run.name) for run in runs.iterdir() if run.name.isdigit()), default=0)
    folder = runs / f"{number:04d}"
    folder.mkdir(0o700)
    try:
        if decisions:
            write_decisions(decisions, folder / DECISIONS)
            steps = decided_steps(steps, folder / DECISIONS)
        method, seed = method_of(steps), secrets.randbits(128)
        update("anonymizing")
        made = method.anonymize(log, seed=seed)
        update("checking and writing")
        if made.pseudonyms is not None:
            made.save_user_map(folder / "users.csv")
        made.save_certificate(folder / "release.certificate")
        private_write(folder / "recipe.toml", written_recipe(steps, seed).encode())
        return number, Verification(made.save(folder / RELEASE))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_unfinished(runs: Path) -> None:
    """Remove runs without a release, which a kill left: they hold a seed, and what is as confidential as the log."""
    if runs.is_dir():
        for run in runs.iterdir():
            if run.name.isdigit() and not (run / RELEASE / MANIFEST).exists():
                shutil.rmtree(run, ignore_errors=True)
