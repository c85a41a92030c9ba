"""No forged release holds. Thousands are tried by `make fuzz`, some of them by `make test`."""

import random
import re
import shutil
from functools import partial

import pytest

import queryveil as qv
from queryveil.claims.certificates import Certificate
from queryveil.methods import METHODS
from queryveil.verification import verify
from tests.fuzz import budget
from tests.fuzz.forging import KINDS, ROWS, changed_rows, forge
from tests.worlds import PARAMETERS

SEED = 2**127 + 1
RELEASES = {
    **{name: (name, given, "parquet") for name, given in PARAMETERS.items()},
    "equality": ("equality", {"k": 2}, "parquet"),
    "equality of users": ("equality", {"k": 2, "link": "user"}, "parquet"),
    "equality of sessions": ("equality", {"k": 2, "link": "session"}, "csv"),
    "equality as AOL": ("equality", {"k": 2, "link": "user"}, "aol"),
    "rules": ("rules", {"min_row_users": 2, "time": "day"}, "parquet"),
    "rules of users": ("rules", {"max_terms": 3, "link": "user", "time": "week"}, "csv"),
    "partition": ("partition", {"k": 3}, "csv"),
}
NO_SEED = {
    r"at input_fingerprint": "nobody can check a fingerprint without the seed that keys it",
    r"at parameters\.": "another value may release the same on this log, and then it is as true",
    r"at linkage": "measured on people that the seed draws, so that it is compared within its error",
    r"pseudonyms permuted|cells of (user|session) swapped": "which number stands for whom follows from the seed",
    r"cells of (event|query|rank|url|time) swapped|cell of event": "equal queries are ordered by the seed",
}
"""What may hold where the seed is not known, and why."""
CHOSEN = NO_SEED | {
    r"cell|row|event given": "whose queries are in a record follows from the seed; the claims about records hold",
}
"""What may hold of records, without the seed."""
DRAWN = {
    "zealous": {r"cell|row": "noise has no right value; a change that makes the release no less likely is not seen"},
    "dp-set": {r"cell|row": "noise has no right value; a change that makes the release no less likely is not seen"},
    "hash": NO_SEED | {r"cell|row|event given": "words that nothing sets apart may be exchanged"},
}
"""What may hold of releases that nobody can make again, and why."""


ROWS_ONCE = list(dict.fromkeys(ROWS))
KINDS_ONCE = [kind for kind in dict.fromkeys(KINDS) if kind is not changed_rows]


@pytest.fixture(scope="module")
def world(tmp_path_factory, small_world):
    """A log of a few users, and an honest release of each kind."""
    folder, log = tmp_path_factory.mktemp("forged"), small_world.log
    for name, (method, parameters, format) in RELEASES.items():
        given = parameters | ({"taxonomy": small_world.directory} if method == "search" else {})
        release = METHODS[method](**given).anonymize(log, seed=SEED)
        assert release.manifest.counts.rows, name
        release.save(folder / name, format=format)
    return folder, log


def accepted(folder, log, seed):
    """Whether the verifier accepts a release; one that cannot be read is not accepted."""
    try:
        return verify(folder, log, certificate=None if seed is None else Certificate(seed)).holds
    except qv.QueryveilError:
        return False


@pytest.mark.parametrize("name", RELEASES)
def test_an_honest_release_holds(world, name):
    folder, log = world
    assert accepted(folder / name, log, None)
    assert accepted(folder / name, log, SEED)


@pytest.mark.parametrize("name", RELEASES)
def test_no_forgery_holds(world, tmp_path, name):
    folder, log = world
    method = RELEASES[name][0]
    repeats = "seed" if method == "search" else METHODS[method](**RELEASES[name][1]).repeats
    for i in budget.seeds(10):
        rng = random.Random(f"{name} {i}")
        place = tmp_path / str(i)
        shutil.copytree(folder / name, place)
        told = forge(place, log, rng)
        if told is None:
            shutil.rmtree(place)
            continue
        if repeats != "never":
            assert not accepted(place, log, SEED), told
        allowed = DRAWN.get(method) or (CHOSEN if repeats == "seed" else NO_SEED)
        if accepted(place, log, None):
            assert any(re.search(pattern, told) for pattern in allowed), (told, i)
        shutil.rmtree(place)


@pytest.mark.parametrize("how", [*ROWS_ONCE, *KINDS_ONCE], ids=lambda one: one.__name__)
def test_every_kind_of_forgery_is_seen_with_the_seed(world, tmp_path, how):
    folder, log = world
    tried = 0
    for i in range(40):
        place = tmp_path / str(i)
        shutil.copytree(folder / "equality of users", place)
        if forge(place, log, random.Random(i), [how] if how in KINDS_ONCE else [partial(changed_rows, changes=[how])]):
            tried += 1
            assert not accepted(place, log, SEED)
        if tried == 3:
            return
    raise AssertionError("nothing was forged")
