from queryveil.assess.reproduce import reproduce


def test_erola2011(world):
    steps = []
    reach, kept, cost = reproduce("erola2011", *world, seed=2, progress=steps.append)
    shares = {(row["of"], row["level"]): row["share"] for row in reach.rows}
    assert 0 < shares["terms", 2] <= shares["terms", 1] < shares["distinct queries", 1] < 1
    srp = {(row["level"], row["k"], row["groups"]): row["SRP"] for row in kept.rows}
    assert len(srp) == 2 * 4 * 3
    for level in (1, 2):
        # Similar users keep more than users thrown together, and larger groups keep less.
        assert all(srp[level, k, "first category"] > srp[level, k, "at random"] > 0.8 / k for k in (2, 3, 4))
        assert srp[level, 2, "first category"] > srp[level, 5, "first category"]
    assert all(row["seconds"] > 0 for row in cost.rows)
    assert steps[-1] == "level 2, k 5"


def test_erola2011_where_a_term_has_one_category(world):
    # WordNet takes a word for its first sense, so that five categories are the same as one.
    _, kept, cost = reproduce("erola2011", world[0], "wordnet")
    assert {row["groups"] for row in kept.rows} == {"first category", "at random"}
    assert {row["groups"] for row in cost.rows} == {"first category"}


def test_the_baseline_is_random(world):
    floors = [
        [row["SRP"] for row in reproduce("erola2011", *world, seed=seed)[1].rows if row["groups"] == "at random"]
        for seed in (1, 2)
    ]
    assert floors[0] != floors[1]
