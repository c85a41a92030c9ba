"""The chart of a comparison: what is kept against what is linked, and apart from it what has no records to link."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from queryveil.assess.comparison.results import UTILITIES
from queryveil.reports.charts import INK, finished, number, ticks, tooltips
from queryveil.reports.looks import Looks, looks_of_methods
from queryveil.reports.page import Drawing, Figure

if TYPE_CHECKING:
    from queryveil.assess.comparison import Comparison, Configuration, Frontier

_HEIGHT, _GAP, _LANE = 300, 44, 24
"""Pixels: the height of the part with an axis, the gap below it, and the height of a lane of the strip."""
_ROOM = 1.06
"""Of the scale, beyond the largest value."""


def frontier_figure(comparison: "Comparison") -> Figure | None:
    """Risk against what is kept; None if no release has both."""
    looks = looks_of_methods(config.family for config in comparison.configurations)
    some = [frontier for frontier in comparison.frontiers if frontier.points or frontier.apart]
    if not some:
        return None
    shown = {config.family for config in comparison.configurations if config.status == "done"}
    keys = [(f"{colour} {shape}", name) for name, (colour, shape) in looks.items() if name in shown]
    limit = number(comparison.policy.max_linkage, True)
    return Figure(
        "frontier",
        "Lower right is best: more is kept, and less is attributed to people. One line per method and link, with its k"
        " at each point. Releases without linked events have no records to link: they stand in a strip of their own,"
        " and lie on no frontier.",
        tuple(_drawing(comparison, frontier, looks) for frontier in some),
        (
            *keys,
            ("dot ink", "filled: meets the policy"),
            ("hollow circle", "hollow: does not"),
            ("dash", "linked by session"),
            ("bar zone", f"linkage that the policy allows (at most {limit})"),
        ),
        ("utility", "release", "kept", "risk", "meets the policy", "on the frontier"),
        tuple(
            (
                frontier.utility,
                name,
                number(kept, True),
                number(comparison.risk(name), True),
                "yes" if comparison.meets(name) else "no",
                "no records" if name in frontier.apart else "yes" if name in frontier.configurations else "no",
            )
            for frontier in some
            for name, kept in _by_risk(frontier)
        ),
        texts=2,
    )


def _by_risk(frontier: "Frontier") -> list[tuple[str, float]]:
    linked = sorted(frontier.points.items(), key=lambda point: (point[1][1], -point[1][0]))
    return [(name, kept) for name, (kept, _) in linked] + sorted(frontier.apart.items(), key=lambda one: -one[1])


def _drawing(comparison: "Comparison", frontier: "Frontier", looks: Looks) -> Drawing:
    listed = tuple(
        f"{name} ({number(frontier.points[name][0], True)} kept, risk {number(frontier.points[name][1], True)})"
        for name in frontier.configurations
    )
    return Drawing(f"Risk against {frontier.utility}", _chart(comparison, frontier, looks), _ends(listed), listed)


def _ends(listed: Sequence[str]) -> str:
    """Where a frontier begins and ends; it is empty if no release of linked events keeps anything."""
    if not listed:
        return "No release of linked events keeps anything of it, so that there is no frontier."
    if len(listed) == 1:
        return f"Of the releases of linked events, no other comes up to {listed[0]}:"
    return f"The frontier of the releases of linked events goes from {listed[0]} to {listed[-1]}:"


def _chart(comparison: "Comparison", frontier: "Frontier", looks: Looks) -> dict[str, Any]:
    import altair as alt

    of = {config.name: config for config in comparison.configurations}
    linked = [_value(comparison, of[name], kept, looks) for name, (kept, _) in frontier.points.items()]
    apart = [_value(comparison, of[name], kept, looks) for name, kept in frontier.apart.items()]
    wide = max(0.05, *(value["kept"] for value in (*linked, *apart))) * _ROOM
    low = min(0.0, *(value["kept"] for value in (*linked, *apart)))
    # Most releases keep a small part of the distinct queries; a root gives them room.
    kind: Literal["sqrt", "linear"] = "sqrt" if frontier.utility == UTILITIES["distinct queries"] else "linear"
    margin = 0.0 if kind == "sqrt" else 0.02 * wide
    x = alt.X(
        "kept:Q",
        title=f"{frontier.utility} →",
        scale=alt.Scale(domain=[low - margin, wide], nice=False, type=kind),
        axis=alt.Axis(tickCount=5, grid=False, **ticks(True)),
    )
    lanes = list(dict.fromkeys(value["method"] for value in apart))
    main = _HEIGHT if linked else 0
    strip = _GAP + _LANE * len(lanes) if lanes else 0
    parts = [
        *([_linked(comparison.policy.max_linkage, linked, x, looks, frontier.utility)] if linked else []),
        *([_strip(apart, x, lanes, main, looks, frontier.utility)] if apart else []),
    ]
    chart = alt.layer(*parts).resolve_scale(y="independent", shape="independent")
    return finished(chart.properties(width="container", height=main + strip), "")


def _value(comparison: "Comparison", config: "Configuration", kept: float, looks: Looks) -> dict[str, Any]:
    """A release as a point."""
    colour = f"var(--{looks[config.family][0]})"
    meets = comparison.meets(config.name)
    link = config.setting("link") or "none"
    return {
        "name": config.name,
        "method": config.family,
        "series": config.name if config.method == "rules" else f"{config.family}, {link}",  # recipes have no order
        "link": link,
        "label": _label(config),
        "order": config.k or config.setting("epsilon") or 0,
        "kept": kept,
        "risk": comparison.risk(config.name),
        "shown": number(kept, True),
        "found": number(comparison.risk(config.name), True),
        "meets": "yes" if meets else "no",
        "stroke": colour,
        "fill": colour if meets else "var(--page)",
    }


def _label(config: "Configuration") -> str:
    if config.k is not None:
        return str(config.k)
    epsilon = config.setting("epsilon")
    return "" if epsilon is None else f"ε {epsilon:g}"


def _linked(limit: float, values: Sequence[Mapping[str, Any]], x: Any, looks: Looks, utility: str) -> Any:
    """The releases of linked events, with the zone that the policy allows."""
    import altair as alt

    high = max(0.05, limit, *(value["risk"] for value in values)) * _ROOM
    # A range of its own leaves the strip below without an axis.
    scale = alt.Scale(domain=[0, high], range=[_HEIGHT, 0], nice=False)
    y = alt.Y("risk:Q", title="risk →", scale=scale, axis=alt.Axis(tickCount=5, orient="left", **ticks(True)))
    zone = alt.Chart({"values": [{"risk": 0, "limit": limit}]})
    base = alt.Chart({"values": list(values)})
    return alt.layer(
        zone.mark_rect(fill="var(--good)", opacity=0.13).encode(y=y, y2="limit:Q"),
        *_marks(base, x, y, values, looks, utility),
    )


def _strip(
    values: Sequence[Mapping[str, Any]], x: Any, lanes: Sequence[str], top: int, looks: Looks, utility: str
) -> Any:
    """The releases without linked events: a lane each method, below the axis."""
    import altair as alt

    begin = top + _GAP
    end = begin + _LANE * len(lanes)
    scale = alt.Scale(domain=list(lanes), range=[begin, end], padding=0.5, type="point")
    y = alt.Y("method:N", title=None, scale=scale, axis=alt.Axis(orient="left", grid=False, labelLimit=90))
    base = alt.Chart({"values": list(values)})
    ground = alt.Chart({"values": [{"text": "no linked records"}]})
    return alt.layer(
        ground.mark_rect(fill="var(--soft)").encode(y=alt.value(begin), y2=alt.value(end)),
        ground.mark_text(align="left", baseline="bottom", fontSize=11, color=INK, opacity=0.7).encode(
            x=alt.value(0), y=alt.value(begin - 4), text="text:N"
        ),
        *_marks(base, x, y, values, looks, utility),
    )


def _marks(base: Any, x: Any, y: Any, values: Sequence[Mapping[str, Any]], looks: Looks, utility: str) -> list[Any]:
    """A line for each method and link, a point for each release, and its k beside it."""
    import altair as alt

    names = [name for name in looks if any(value["method"] == name for value in values)]
    shapes = alt.Scale(domain=names, range=[looks[name][1] for name in names])
    tips = tooltips(("name", "release"), ("shown", utility), ("found", "risk"), ("meets", "meets the policy"))
    dash = alt.condition("datum.link === 'session'", alt.value([4, 3]), alt.value([1, 0]))
    return [
        base.mark_line(strokeWidth=1.5, opacity=0.7).encode(
            x=x, y=y, detail="series:N", order="order:Q", stroke=alt.Stroke("stroke:N", scale=None), strokeDash=dash
        ),
        base.mark_point(size=75, opacity=1, strokeWidth=1.8).encode(
            x=x,
            y=y,
            shape=alt.Shape("method:N", scale=shapes, legend=None),
            fill=alt.Fill("fill:N", scale=None),
            stroke=alt.Stroke("stroke:N", scale=None),
            tooltip=tips,
        ),
        base.mark_text(dx=7, dy=-8, fontSize=10, color=INK).encode(x=x, y=y, text="label:N"),
    ]
