"""What all papers have in common: figures can be drawn, and what cannot be run is refused."""

import pytest

import queryveil as qv
from queryveil.assess.reproduce import PAPERS, reproduce
from queryveil.errors import QueryveilError


def test_the_same_seed_gives_the_same_figures(world, reproduced):
    first, second = reproduce("erola2012", *world)[0].rows, reproduced("erola2012")[0].rows
    assert first == second


@pytest.mark.parametrize("paper", PAPERS)
def test_figures_can_be_drawn(reproduced, paper):
    for figure in reproduced(paper):
        drawn = figure.chart().to_dict()
        assert figure.title in str(drawn)
        assert (
            (len(drawn["hconcat"]) == len({row[figure.panel] for row in figure.rows}))
            if figure.panel
            else ("layer" in drawn)
        )


def test_an_unknown_paper(world):
    with pytest.raises(
        QueryveilError, match="There is no paper 'adar2007' to reproduce; there are erola2011, erola2012"
    ):
        reproduce("adar2007", *world)


def test_a_log_that_nothing_links(tmp_path):
    (tmp_path / "log.tsv").write_text("user\tquery\n" + "".join(f"u{i}\txyzzy{i}q\n" for i in range(8)))
    with pytest.raises(QueryveilError, match="No query of the log has a category in 'wordnet'"):
        reproduce("erola2011", qv.read_log(tmp_path / "log.tsv"))


def test_too_few_users(tmp_path):
    (tmp_path / "log.tsv").write_text("user\tquery\na\tdog\nb\tcat\n")
    with pytest.raises(QueryveilError, match="groups of up to 5 users; the log has only 2"):
        reproduce("erola2011", qv.read_log(tmp_path / "log.tsv"))
