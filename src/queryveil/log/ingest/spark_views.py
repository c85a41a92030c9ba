"""Results of events on a cluster: bad ones, which are those of one machine, are left out before anything is made."""

from queryveil.engines import identifier
from queryveil.engines.spark import Spark
from queryveil.formats.rows import MOST_RESULTS, BadRows
from queryveil.log.ingest.views import KINDS

_EVENT = ("user_id", "time", "query_id")


def drop_bad_views(engine: Spark) -> BadRows:
    """Leave out the rows of `raw` that cannot be results of one event, and return how many there were."""
    event = ", ".join(_EVENT)
    engine.materialize(
        f"SELECT {event}, rank, url_id FROM raw WHERE note IS NULL AND (rank IS NOT NULL OR url_id IS NOT NULL)"  # noqa: S608  # parts of this module
        f" GROUP BY {event}, rank, url_id",
        "results",
    )
    many = f"SELECT {event} FROM results GROUP BY {event} HAVING count(*) > {MOST_RESULTS}"  # noqa: S608  # parts of this module
    repeated = f"SELECT {event}, rank FROM results WHERE rank IS NOT NULL GROUP BY {event}, rank HAVING count(*) > 1"  # noqa: S608  # parts of this module
    bad = BadRows()
    if any(engine.row(f"SELECT count(*) AS n FROM ({some}) AS some")[0] for some in (many, repeated)):  # noqa: S608  # parts of this module
        columns = ", ".join(f"r.{identifier(name)} AS {identifier(name)}" for name in engine.columns("raw"))
        same = " AND ".join(f"m.{key} = r.{key}" for key in _EVENT)
        alike = " AND ".join(f"t.{key} = r.{key}" for key in (*_EVENT, "rank"))
        engine.materialize(
            f"SELECT {columns}, CASE WHEN m.user_id IS NOT NULL THEN 2 WHEN t.user_id IS NOT NULL THEN 1 ELSE 0 END"  # noqa: S608  # names are escaped
            f" AS wrong FROM raw r LEFT JOIN ({many}) AS m ON {same} LEFT JOIN ({repeated}) AS t ON {alike}",
            "checked",
        )
        found = engine.fetch(
            "SELECT wrong, file, count(*) AS n, min(line) AS line FROM checked WHERE wrong > 0 GROUP BY wrong, file"
            " ORDER BY wrong, file"
        )
        for row in found.to_pylist():
            bad.add(KINDS[row["wrong"]], row["n"], f"{row['file']}:{row['line']}")
        engine.materialize(f"SELECT {columns} FROM checked r WHERE r.wrong = 0", "raw")  # noqa: S608  # names are escaped
        engine.drop("checked")
    engine.drop("results")
    return bad
