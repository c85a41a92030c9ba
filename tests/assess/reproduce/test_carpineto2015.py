import pyarrow as pa

from queryveil.assess.reproduce import reproduce


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
