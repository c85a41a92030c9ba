"""The papers' experiments run on any log, and their figures hold what they say."""

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess import reproductions
from queryveil.assess.reproductions import PAPERS, reproduce
from queryveil.errors import QueryveilError
from queryveil.knowledge import open_taxonomy
from queryveil.knowledge.directory import build_directory


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A synthetic log, and the directory of its world."""
    folder = tmp_path_factory.mktemp("world")
    qv.generate(folder / "log.tsv", users=150, seed=1, truth=folder / "truth")
    build_directory([folder / "truth/structure.rdf.u8", folder / "truth/content.rdf.u8"], folder / "odp.qvd")
    return qv.read_log(folder / "log.tsv"), open_taxonomy(folder / "odp.qvd")


def test_erola2011(world):
    told = []
    reach, kept, cost = reproduce("erola2011", *world, seed=2, progress=told.append)
    shares = {(row["of"], row["level"]): row["share"] for row in reach.rows}
    assert 0 < shares["terms", 2] <= shares["terms", 1] < shares["distinct queries", 1] < 1
    srp = {(row["level"], row["k"], row["groups"]): row["SRP"] for row in kept.rows}
    assert len(srp) == 2 * 4 * 3
    for level in (1, 2):
        # Similar users keep more than users thrown together, and larger groups keep less.
        assert all(srp[level, k, "first category"] > srp[level, k, "by lot"] > 0.8 / k for k in (2, 3, 4))
        assert srp[level, 2, "first category"] > srp[level, 5, "first category"]
    assert all(row["seconds"] > 0 for row in cost.rows)
    assert told[-1] == "level 2, k 5"


def test_erola2011_where_a_term_has_one_category(world):
    # WordNet takes a word for its first sense, so that five categories are the same as one.
    _, kept, cost = reproduce("erola2011", world[0], "wordnet")
    assert {row["groups"] for row in kept.rows} == {"first category", "by lot"}
    assert {row["groups"] for row in cost.rows} == {"first category"}


def test_erola2012(world):
    everyone, best = reproduce("erola2012", *world)
    srp = {(row["level"], row["k"], row["method"]): row["SRP"] for row in everyone.rows}
    top = {(row["level"], row["k"], row["method"]): row["SRP"] for row in best.rows}
    assert set(srp) == {
        (level, k, m) for level in (1, 2) for k in (2, 3, 4, 5) for m in ("search (2012)", "terms (2011)", "by lot")
    }
    assert all(top[key] >= srp[key] > 0 for key in srp)


def test_the_same_seed_gives_the_same_figures(world):
    first, second = (reproduce("erola2012", *world, seed=7)[0].rows for _ in range(2))
    assert first == second


@pytest.mark.parametrize("paper", PAPERS)
def test_figures_can_be_drawn(world, paper):
    for figure in reproduce(paper, *world):
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


def test_the_floor_is_drawn_by_lot(world):
    floors = [
        [row["SRP"] for row in reproduce("erola2011", *world, seed=seed)[1].rows if row["groups"] == "by lot"]
        for seed in (1, 2)
    ]
    assert floors[0] != floors[1]


def test_a_log_that_nothing_links(tmp_path):
    (tmp_path / "log.tsv").write_text("user\tquery\n" + "".join(f"u{i}\txyzzy{i}q\n" for i in range(8)))
    with pytest.raises(QueryveilError, match="No query of the log has a category in 'wordnet'"):
        reproduce("erola2011", qv.read_log(tmp_path / "log.tsv"))


def test_too_few_users(tmp_path):
    (tmp_path / "log.tsv").write_text("user\tquery\na\tdog\nb\tcat\n")
    with pytest.raises(QueryveilError, match="groups of up to 5 users; the log has only 2"):
        reproduce("erola2011", qv.read_log(tmp_path / "log.tsv"))


def test_batet2013(world):
    lost, linked, *removal = reproduce("batet2013", *world, clusters=20)
    loss = {(row["k"], row["method"]): row["L"] for row in lost.rows}
    assert set(loss) == {(row["k"], row["method"]) for row in linked.rows}
    assert len(loss) == 6 * 5
    assert {row["clusters"] for row in lost.rows} == {20}
    assert all(loss[k, "semantic MDAV"] < loss[k, "by lot"] for k in (2, 3, 4, 5, 6, 7))
    assert all(0 <= row["RL"] <= 1 / row["k"] for row in linked.rows)
    by_sites = {figure.name: figure for figure in removal}["figure-2-poblete"]
    assert [row["Kp"] for row in by_sites.rows] == [2, 5, 10, 20, 30, 40]
    users, found = ([row[name] for row in by_sites.rows] for name in ("users", "L"))
    assert users == sorted(users, reverse=True)
    assert users[0] > 0 < found[0] <= found[-1] <= 1
    assert by_sites.rows[0]["RL"] > 0
    by_noise = {figure.name: figure for figure in removal}["figure-2-korolova"]
    assert [row["d"] for row in by_noise.rows] == [1, 2, 5, 10, 15, 20]
    assert "not private themselves" in by_noise.title
    # So few users count for any query that with d = 20 none reaches the threshold.
    assert by_noise.rows[-1]["kept"] <= by_noise.rows[0]["kept"] < 0.5
    assert all(0 <= row["RL"] <= row["users"] / world[0].n_users for row in by_noise.rows)
    assert all(0 <= row["L"] <= 1 for row in by_noise.rows)


def test_logs_are_cut_to_the_released_queries_with_all_repetitions():
    rows = [(f"u{u}", query) for u in range(60) for query in ("tea", "tea", f"own {u}")]
    times = [f"2006-03-01 10:00:{i % 60:02}" for i in range(len(rows))]
    log = qv.read_log(pa.table({"user": [r[0] for r in rows], "query": [r[1] for r in rows], "time": times}))
    release = reproductions._cut_to_released(log, 1, 0)
    found = pa.Table.from_batches(release.batches(), release.schema)
    # Sixty users count for it, ten times the threshold; each has it twice, though he counts once.
    assert set(found["query"].to_pylist()) == {"tea"}
    assert (len(found), release.manifest.counts.users) == (120, 60)


def test_batet2013_needs_users_with_a_category(world):
    log = qv.read_log(pa.table({"user": list("abcdefgh"), "query": ["zzz"] * 5 + ["dog", "cat", "dog"]}))
    with pytest.raises(QueryveilError, match="only 3 have a query with a category in 'wordnet'"):
        reproduce("batet2013", log)


def test_milanifard2010(world):
    dense, lost, long, level, effect, cost = reproduce("milanifard2010", *world)
    assert 0 < dense.rows[0]["density"] < 1
    per_item = {(row["k"], row["method"]): row["distortion per item"] for row in lost.rows}
    assert len(per_item) == 4 * 4
    for k in (5, 7, 10, 15):
        assert per_item[k, "nearest, tight"] < 0.9 * per_item[k, "Clump1"]
        assert per_item[k, "Clump1"] <= per_item[k, "Clump2"]
    items = {(row["k"], row["method"]): row["items a user"] for row in long.rows}
    assert items[5, "Clump1"] > items[5, "Clump2"]
    assert all(row["level"] >= 1 for row in level.rows)
    assert [row["r"] for row in effect.rows] == [5, 10, 30, 50, 100]
    assert {row["method"] for row in cost.rows} == {"Clump1", "nearest, tight", "Partition"}


def test_carpineto2015(world):
    log = world[0]
    texts = log.query_text.to_pylist()
    labels = pa.table({"query": texts, "sensitive": [users == 1 for users in log.users_per_query.tolist()]})
    shares, labelled, figure = reproduce("carpineto2015", *world, labels=labels)
    assert [one.name for one in (shares, labelled, figure)] == ["figure-5a", "figure-6", "figure-7"]
    released = {(row["k"], row["method"]): row["released queries"] for row in shares.rows}
    assert all(released[k, "AFF θ = 0.8"] >= released[k, "AFF θ = 0.9"] >= released[k, "EQ"] for k, _ in released)
    assert released[2, "EQ"] == (log.users_per_query >= 2).mean()
    right = {(row["k"], row["method"], row["beta"]): row["F"] for row in labelled.rows}
    assert right[2, "EQ", 1.0] == right[2, "EQ", 0.1] == 1  # equality at k = 2 releases just what is not of one user
    assert all(right[k, "EQ", beta] < 1 for k, _, beta in right if k > 2)
    cost = {(row["k"], row["method"]): row["NCP"] for row in figure.rows}
    assert all(0 <= value <= 1 for value in cost.values())
    assert all(cost[k, "AFF θ = 0.9"] <= cost[k, "EQ"] for k, _ in cost)
    assert cost[2, "EQ"] < cost[50, "EQ"]
