"""A real log, where it is at hand; it is not part of the project."""

from pathlib import Path

import pytest

import queryveil as qv

EXCITE = Path(__file__).parents[3] / "shared" / "data" / "logs" / "excite-small.log"


@pytest.mark.skipif(not EXCITE.exists(), reason="the Excite sample is not on this machine")
def test_the_excite_sample_has_its_known_counts():
    log = qv.read_log(EXCITE)
    assert (log.stats.rows, log.stats.empty_rows, log.stats.bad_rows.total) == (3968, 533, 0)
    assert (len(log.events), log.n_users, log.n_queries) == (3950, 863, 2095)
    assert str(log.events["time"][0].as_py().date()) == "1997-09-16"
