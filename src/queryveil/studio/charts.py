"""Charts of the app that no report has."""

from typing import Any

from queryveil.assess.profiles import Profile
from queryveil.release.summary import share
from queryveil.reports.charts import INK, MAIN, OTHER, finished, tooltips
from queryveil.reports.page import Drawing, Figure

_ROW = 34


def band_figure(profile: Profile) -> Figure:
    """How queries and events spread over frequency bands."""
    import altair as alt

    values: list[dict[str, Any]] = []
    for band in profile.bands:
        for kind, part, whole in (
            ("distinct queries", band.queries, profile.queries),
            ("events", band.events, profile.events),
        ):
            values.append(
                {"band": band.label, "kind": kind, "share": part / whole, "shown": share(part, whole), "n": f"{part:,}"}
            )
    labels = [band.label for band in profile.bands]
    base = alt.Chart({"values": values}).encode(
        y=alt.Y("band:N", sort=labels, title=None, axis=alt.Axis(labelLimit=90)),
        yOffset=alt.YOffset("kind:N", sort=["distinct queries", "events"]),
        x=alt.X("share:Q", title=None, scale=alt.Scale(domain=[0, 1.12]), axis=alt.Axis(format="~%", tickCount=4)),
    )
    colour = alt.Scale(domain=["distinct queries", "events"], range=[MAIN, OTHER])
    bars = base.mark_bar().encode(
        color=alt.Color("kind:N", scale=colour, legend=None),
        tooltip=tooltips(("band", "issued by"), ("kind", "what"), ("n", "number"), ("shown", "share")),
    )
    numbers = base.mark_text(align="left", dx=4, fontSize=10, color=INK).encode(text="shown:N")
    alone = next((band for band in profile.bands if band.most == 1), None)
    caption = "Distinct queries and events by how many users issued a query."
    if alone is not None:
        caption = f"{share(alone.queries, profile.queries)} of the distinct queries were issued by one user alone."
    chart = alt.layer(bars, numbers).properties(width="container", height=_ROW * len(labels))
    return Figure(
        "bands",
        caption,
        (Drawing("", finished(chart, "")),),
        (("bar main", "distinct queries"), ("bar other", "events")),
        ("users", "distinct queries", "share", "events", "share"),
        tuple(
            (
                band.label,
                f"{band.queries:,}",
                share(band.queries, profile.queries),
                f"{band.events:,}",
                share(band.events, profile.events),
            )
            for band in profile.bands
        ),
    )
