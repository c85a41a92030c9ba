from queryveil.assess.reproduce import reproduce


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
