"""Drawings: small graphs as SVG, vertices with numbers, the darker the higher their degree; and charts as files."""

from collections.abc import Sequence
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from queryveil.arrays import Floats
from queryveil.errors import require
from queryveil.files.folders import check_file, write_whole
from queryveil.text.show import isolated, shortened

CHARTS = (".svg", ".png", ".html")
WIDTH, HEIGHT, LINE = 900, 640, 18
LONGEST = 90


def draw_graph(*, title: str, names: Sequence[str], degrees: Sequence[int], edges: Sequence[tuple[int, int]]) -> str:
    """The graph as an SVG document.

    Args:
        title: A line above it.
        names: What each vertex is called; anything, however hostile.
        degrees: The degree of each vertex.
        edges: Pairs of places.
    """
    radius = 14 if len(names) <= 60 else 9
    place = layout(len(names), edges) * [WIDTH - 6 * radius, HEIGHT - 6 * radius] + 3 * radius
    tones = _tones(degrees)
    height = HEIGHT + LINE * (len(names) + 5)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="20" font-size="14">{_text(title)}</text>',
        '<g stroke="#999" stroke-opacity="0.6">',
        *(
            f'<line x1="{place[a, 0]:.1f}" y1="{place[a, 1]:.1f}" x2="{place[b, 0]:.1f}" y2="{place[b, 1]:.1f}"/>'
            for a, b in edges
        ),
        "</g>",
    ]
    for i, (name, degree) in enumerate(zip(names, degrees, strict=True)):
        fill, ink = tones[degree]
        x, y = place[i]
        out.append(
            f'<g><title>{_text(name)}, degree {degree}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"'
            f' fill="{fill}" stroke="black" stroke-width="{2.5 if i == 0 else 0.8}"/><text x="{x:.1f}"'
            f' y="{y + 4:.1f}" text-anchor="middle" font-size="{radius * 0.75:.0f}" fill="{ink}">{i + 1}</text></g>'
        )
    y = HEIGHT + LINE
    out.append(f'<text x="12" y="{y}">Degree:</text>')
    for i, degree in enumerate(sorted(tones)):
        x = 70 + 70 * (i % 11)
        y = HEIGHT + LINE * (1 + i // 11)
        out.append(f'<circle cx="{x}" cy="{y - 4}" r="7" fill="{tones[degree][0]}" stroke="black"/>')
        out.append(f'<text x="{x + 12}" y="{y}">{degree}</text>')
    for i, (name, degree) in enumerate(zip(names, degrees, strict=True)):
        y += LINE
        short = shortened(name, LONGEST)
        out.append(f'<text x="12" y="{y + 8}">{_text(f"({i + 1}) {short}, degree {degree}")}</text>')
    return "\n".join([*out, "</svg>", ""])


def _text(text: str) -> str:
    return escape(isolated(text))


def _tones(degrees: Sequence[int]) -> dict[int, tuple[str, str]]:
    """A grey for each degree, the darker the higher, and the colour of a number on it."""
    levels = sorted(set(degrees))
    found = {}
    for i, degree in enumerate(levels):
        grey = 245 - round(205 * (i / max(len(levels) - 1, 1)))
        found[degree] = (f"rgb({grey},{grey},{grey})", "black" if grey > 128 else "white")
    return found


def layout(n: int, edges: Sequence[tuple[int, int]]) -> Floats:
    """Places in the unit square: all vertices push each other off, edges pull (Fruchterman and Reingold 1991)."""
    place = np.random.default_rng(0).random((n, 2))
    if n == 1:
        return np.full((1, 2), 0.5)
    a, b = np.array(edges, np.int64).reshape(-1, 2).T
    spring = np.sqrt(1 / n)
    for step in np.linspace(0.1, 0.002, 200):
        apart = place[:, None] - place[None]
        far = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        push = (apart * (spring**2 / far**2)[..., None]).sum(axis=1)
        pull = (place[b] - place[a]) * (np.sqrt(((place[b] - place[a]) ** 2).sum(axis=1)) / spring)[:, None]
        np.add.at(push, a, pull)
        np.subtract.at(push, b, pull)
        push += (0.5 - place) * 0.5  # towards the middle, so that parts without an edge between them stay near
        length = np.maximum(np.sqrt((push**2).sum(axis=1)), 1e-9)
        place += push * (np.minimum(length, step) / length)[:, None]
    low, high = place.min(axis=0), place.max(axis=0)
    spread: Floats = (place - low) / np.maximum(high - low, 1e-9)
    return spread


def check_chart(path: str | Path, *, overwrite: bool) -> Path:
    """Refuse a chart that cannot be written; for those who want to know before they compute what it shows."""
    require("A chart", "altair", "vl_convert")
    return check_file(path, CHARTS, overwrite)


def save_chart(chart: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an Altair chart to a file.

    Args:
        chart: The chart.
        path: Where to: .svg, .png, or .html, which needs no network.
        overwrite: Whether a file at this place may be replaced.
    """
    place = check_chart(path, overwrite=overwrite)
    if place.suffix.lower() == ".png":
        binary = BytesIO()
        chart.save(binary, format="png", scale_factor=2)
        write_whole(place, binary.getvalue(), overwrite=overwrite)
        return
    text = StringIO()
    kind = place.suffix.lower()[1:]
    # All that the page needs is in it, and no menu that would carry the figures to a site.
    alone: dict[str, Any] = {"inline": True, "embed_options": {"actions": False}} if kind == "html" else {}
    chart.save(text, format=kind, **alone)
    write_whole(place, text.getvalue().encode(), overwrite=overwrite)
