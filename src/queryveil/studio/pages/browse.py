"""What is released and what is held back, page by page; masked until somebody lifts the mask."""

from dataclasses import dataclass
from functools import partial
from typing import get_args

import pyarrow as pa

from queryveil.assess.browse import ORDERS, BrowsedQuery, Which
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog
from queryveil.reports.examples import masked, masked_texts
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number

SIZE = 25
LABELS = {
    "random": "at random",
    "longest": "longest first",
    "rarest_word": "rarest words first",
    "users": "most users first",
}


@dataclass(frozen=True)
class Line:
    """A query of a page."""

    query_id: int | None
    text: str
    found: BrowsedQuery


def page(session: Session, form: Form) -> View:
    """The list, and what to choose of it."""
    given = {"orders": [(order, LABELS[order]) for order in ORDERS], "release": session.release}
    return View("browse.html", given | {"lines": None}, ("read", "anonymize"))


def rows(session: Session, form: Form) -> View:
    """A page of the list."""
    which, order = form.get("which", "released"), form.get("order", "random")
    if which not in get_args(Which) or order not in ORDERS:
        raise QueryveilError("There is no such list; load the page again.")
    browser = session.browser(flagged="flagged" in form)
    if browser is None:
        return View("lines_waiting.html")
    look = partial(
        browser.page,
        "held" if which == "held" else "released",
        order=next(one for one in ORDERS if one == order),
        one_user="one_user" in form,
        flagged="flagged" in form,
        contains=form.get("contains", ""),
        size=SIZE,
    )
    found = look(page=max(number(form, "page", 1) - 1, 0))
    if found.page and not found.rows:  # the list may have become shorter
        found = look(page=max(found.pages - 1, 0))
    ids = ids_of(session.open_log, [one.query for one in found.rows])
    texts = [one.query for one in found.rows]
    if session.state.masked:
        known = [number for number in ids if number is not None]
        others = [text for number, text in zip(ids, texts, strict=True) if number is None]
        hidden = dict(zip(known, masked(session.open_log, known), strict=True))
        shapes = dict(zip(others, masked_texts(session.open_log, others), strict=True))
        texts = [shapes[text] if number is None else hidden[number] for number, text in zip(ids, texts, strict=True)]
    lines = [Line(*line) for line in zip(ids, texts, found.rows, strict=True)]
    return View("lines.html", {"lines": lines, "found": found, "which": which})


def ids_of(log: LocalLog, texts: list[str]) -> list[int | None]:
    """The numbers of queries in the log; None for a masked one, which is not in it."""
    with log.workspace() as work:
        given = work.read(pa.table({"query": pa.array(texts, pa.large_string())}))
        found = work.fetch(
            f"SELECT q.query_id AS query_id, q.query AS query FROM {given} g JOIN queries q ON q.query = g.query"  # noqa: S608  # a table of ours
        )
    known = dict(zip(found["query"].to_pylist(), found["query_id"].to_pylist(), strict=True))
    return [known.get(text) for text in texts]


def mask(session: Session, form: Form) -> View:
    """Lift the mask, which is written down, or put it on again."""
    lift = form.get("lift") == "yes"
    by = form.get("by", "").strip()
    if lift and session.project is None:
        raise QueryveilError("Lifting the mask is written down in a project; start the studio with one.")
    if lift and not by:
        raise QueryveilError("Say who lifts the mask; it is written down.")
    if not lift:
        session.state.masked = True  # whatever can be written
    # Written down first: without a line in the journal no text is shown.
    session.note("lifted the mask" if lift else "masked texts again", by=by, about=form.get("why", "").strip())
    session.change(masked=not lift, reviewer=by or session.state.reviewer)
    return page(session, form)
