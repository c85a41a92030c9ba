"""Synthetic query logs: AOL-like, from a seed, with known ground truth.

>>> from queryveil.synth import generate
>>> generate("log.tsv.gz", users=1000, seed=1)  # doctest: +SKIP
Summary(users=1000, events=..., rows=..., clicks=...)
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from queryveil.errors import QueryveilError, did_you_mean, option, parameter
from queryveil.synth.calibrate import Figure, calibrate
from queryveil.synth.summary import Summary

__all__ = ["FEWEST_USERS", "LANGUAGES", "MOST_USERS", "Figure", "Summary", "calibrate", "generate"]

FEWEST_USERS = 100
MOST_USERS = 5_000_000
ENDINGS = (".tsv", ".tsv.gz", ".tsv.zst", ".parquet")
LANGUAGES = ("en", "de", "fr", "es", "pl", "el", "zh", "ja")
"""Languages of synthetic logs, each with its words in `data/`."""
MIX = "mix"
"""All languages, in the place of their names."""


def generate(
    path: str | Path,
    *,
    users: int,
    seed: int = 0,
    language: str | Sequence[str] = "en",
    truth: str | Path | None = None,
    views: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Write a synthetic query log.

    The same seed gives the same bytes on any number of threads. Memory does not grow with the number of users.

    Args:
        path: The file to write. The ending decides the format: `.tsv`, `.tsv.gz`, `.tsv.zst` (AOL; with views
            a column more) or `.parquet`.
        users: How many users, from 100 to 5,000,000; about 56 rows each.
        seed: Random seed, from 0 to 2**63 - 1.
        language: The language of the queries: one of `LANGUAGES`, several (`["de", "fr"]` or `"de,fr"`), or `"mix"` for
            all. Each user has one language, and as many users have one as another.
        truth: A folder for the ground truth, for measuring only: `queries.parquet`, and a web directory of the topics
            and sites as `structure.rdf.u8` and `content.rdf.u8`. Topics have the same English names in all languages.
        views: Write what was shown: ten results for each event, clicked or not, instead of clicks alone. Events and
            clicks are the same.
        overwrite: Whether to replace earlier files.
        progress: Called with the users done so far and the number of all users.

    Raises:
        QueryveilError: A parameter is out of bounds, the target exists, or it cannot be written.
    """
    path = Path(path)
    truth = Path(truth) if truth is not None else None
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
    if ending is None:
        raise QueryveilError(f"The name of a synthetic log must end in {', '.join(ENDINGS)}. Got {path.name} instead.")
    if not FEWEST_USERS <= users <= MOST_USERS:
        raise QueryveilError(
            f"{parameter('generate', 'users')} must be from {FEWEST_USERS:,} to {MOST_USERS:,}. Got {users:,} instead."
        )
    if not 0 <= seed < 1 << 63:
        raise QueryveilError(f"{parameter('generate', 'seed')} must be from 0 to 2**63 - 1. Got {seed} instead.")
    languages = _languages(language)
    for target in filter(None, (path, truth)):
        if target.exists() and not overwrite:
            raise QueryveilError(
                f"{target} exists already; choose another name, or replace it with {option('overwrite', True)}.",
                code="exists",
            )
        if not target.parent.is_dir():
            raise QueryveilError(f"{target} cannot be written, because the folder {target.parent} does not exist.")
    if path.is_dir():
        raise QueryveilError(f"{path} is a folder; give the name of a file.")
    if truth is not None and truth.exists() and not truth.is_dir():
        raise QueryveilError(f"{truth} is a file; give the name of a folder for the ground truth.")

    from queryveil.synth.make import make  # loads numba, which takes a second

    return make(path, ending, truth, users, seed, languages, progress, overwrite=overwrite, views=views)


def _languages(given: str | Sequence[str]) -> tuple[str, ...]:
    """The languages of a log, in the order of `LANGUAGES`."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if names == [MIX]:
        return LANGUAGES
    wrong = next((name for name in names if name not in LANGUAGES), None)
    if wrong is not None or not names:
        known = ", ".join((*LANGUAGES, MIX))
        got = f"{wrong!r} instead; {did_you_mean(str(wrong), LANGUAGES)}" if wrong is not None else "none instead"
        raise QueryveilError(f"{parameter('generate', 'language')} must be some of {known}. Got {got}.")
    return tuple(name for name in LANGUAGES if name in names)
