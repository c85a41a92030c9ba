"""Charts of results as Altair objects, for notebooks and files."""

from typing import TYPE_CHECKING, Any

from queryveil.errors import QueryveilError, require
from queryveil.text.show import percent

if TYPE_CHECKING:
    from queryveil.assess.comparison.results import Comparison, Frontier
    from queryveil.assess.sweeps import Sweep

_POLICY = {True: "meets the policy", False: "does not meet it"}


def sweep_chart(sweep: "Sweep") -> Any:
    """The released shares of distinct queries and of events against k, one line per method."""
    require("A chart", "altair")
    import altair as alt

    points = sweep.to_arrow().to_pylist()
    ks, methods = (list(dict.fromkeys(point[name] for point in points)) for name in ("k", "method"))
    parts = []
    for name, title in (("query_share", "Distinct queries released"), ("event_share", "Events released")):
        values = [
            {"method": one["method"], "k": one["k"], "share": one[name], "released": percent(one[name])}
            for one in points
        ]
        lines = alt.Chart({"values": values}, title=title, width=320, height=260).encode(
            x=alt.X("k:Q", title="k, distinct users", scale=alt.Scale(type="log"), axis=alt.Axis(values=ks)),
            y=alt.Y("share:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(format="~%")),
            color=alt.Color("method:N", title=None, sort=methods),
            shape=alt.Shape("method:N", sort=methods, legend=None),
            tooltip=["method:N", "k:Q", "released:N"],
        )
        parts.append(lines.mark_line() + lines.mark_point(filled=True, size=60))
    return alt.hconcat(*parts)


def comparison_chart(comparison: "Comparison", frontier: "Frontier") -> Any:
    """What each release keeps against its risk, one point per configuration.

    Releases without linked events have no records to link, so their risk is not comparable. They have a chart of their
    own below, one row per method.

    Args:
        comparison: What `queryveil.compare` found.
        frontier: What is kept, and the releases that have it.
    """
    require("A chart", "altair")
    import altair as alt

    if not frontier.points and not frontier.apart:
        raise QueryveilError(f"There is nothing to draw: no release has a value for {frontier.utility}.")
    methods = {configuration.name: configuration.method for configuration in comparison.configurations}
    risk = alt.Y("risk:Q", scale=alt.Scale(domainMin=0), axis=alt.Axis(format="~%"))
    lane = alt.Y("method:N", title=None)
    parts = []
    for kept, y, title in (
        ({name: one for name, (one, _) in frontier.points.items()}, risk, "Linked events"),
        (frontier.apart, lane, "No linked events"),
    ):
        values = [
            {
                "configuration": name,
                "method": methods[name],
                "kept": one,
                "risk": found,
                "policy": _POLICY[comparison.meets(name)],
                "kept in per cent": percent(one),
                "risk in per cent": "not measured" if found is None else percent(found),
            }
            for name, one in kept.items()
            for found in [comparison.risk(name)]
        ]
        chart = alt.Chart({"values": values}, title=title, width=420).mark_point(filled=True, size=80, opacity=0.9)
        chart = chart.encode(
            x=alt.X("kept:Q", title=frontier.utility, axis=alt.Axis(format="~%")),
            y=y,
            color=alt.Color("method:N", scale=alt.Scale(scheme="tableau20")),  # there are more than ten methods
            shape=alt.Shape("policy:N", scale=alt.Scale(domain=list(_POLICY.values()), range=["circle", "cross"])),
            tooltip=[
                "configuration:N",
                alt.Tooltip("kept in per cent:N", title=frontier.utility),
                alt.Tooltip("risk in per cent:N", title="risk"),
                "policy:N",
            ],
        )
        parts += [chart] if values else []
    return alt.vconcat(*parts).resolve_scale(x="shared", color="shared", shape="shared")
