from queryveil.assess.reproduce import reproduce


def test_erola2012(world):
    everyone, best = reproduce("erola2012", *world)
    srp = {(row["level"], row["k"], row["method"]): row["SRP"] for row in everyone.rows}
    top = {(row["level"], row["k"], row["method"]): row["SRP"] for row in best.rows}
    assert set(srp) == {
        (level, k, m) for level in (1, 2) for k in (2, 3, 4, 5) for m in ("search (2012)", "terms (2011)", "at random")
    }
    assert all(top[key] >= srp[key] > 0 for key in srp)
