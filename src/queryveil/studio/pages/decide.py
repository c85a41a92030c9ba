"""Decisions: which queries and words are blocked or allowed, by whom, and why."""

import time
from datetime import UTC, datetime

from pydantic import ValidationError

from queryveil.errors import QueryveilError
from queryveil.reports.examples import shape
from queryveil.scrubbing.decisions import Decision
from queryveil.studio.decided import mark
from queryveil.studio.hits import read_as
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number
from queryveil.text import language

_AT_ONCE = 2.0
"""Seconds that a page counts; the rest of a long list is counted when it is shown again."""


def page(session: Session, form: Form) -> View:
    """All decisions, and the journal."""
    journal = [] if session.project is None else session.project.journal
    until, decided = time.monotonic() + _AT_ONCE, []
    for one in session.decisions:
        text = shape(one.text, set(), whole=False) if session.state.masked else one.text
        decided.append((mark(one), text, one, session.hits(one, count=time.monotonic() < until)))
    uncounted = session.log is not None and any(hits is None for *_, hits in decided)
    return View("decide.html", {"decisions": decided, "journal": journal, "uncounted": uncounted}, ("read",))


def look(session: Session, form: Form) -> View:
    """How many queries and events a decision would be about, while it is typed."""
    made, refused = None, ""
    if form.get("text", "").strip():
        try:
            made = _made(session, form)
        except QueryveilError as error:  # beside the text, because it may be half typed
            refused = str(error)
    hits = None if made is None else session.hits(made)
    return View("hits.html", {"hits": hits, "decision": made, "refused": refused})


def add(session: Session, form: Form) -> View:
    """Decide about a query or a word."""
    _decide(session, form)
    return page(session, form)


def quick(session: Session, form: Form) -> View:
    """Block a query of a list."""
    _decide(session, {"by": session.state.reviewer, **form})
    return View("blocked.html")


def _decide(session: Session, form: Form) -> None:
    by = form.get("by", "").strip()
    if not by:
        raise QueryveilError("Say who decides first, on the screen Decide.")
    made = _made(session, form)
    session.decided.add(made)
    session.change(reviewer=by)
    session.note(f"decided: {made.kind} a {made.of}", by=by)


def _made(session: Session, form: Form) -> Decision:
    """The decision that a form says."""
    text = form.get("text", "").strip()
    if "query_id" in form:  # clicked in a list, where its text may be masked
        place, log = number(form, "query_id"), session.open_log
        if place >= log.n_queries:
            raise QueryveilError("There is no such query in the log; load the page again.")
        text = str(log.query_text[place].as_py())
    try:
        made = Decision.model_validate(
            {
                "kind": form.get("kind"),
                "of": form.get("of"),
                "text": text,
                "comment": form.get("comment", "").strip(),
                "by": form.get("by", "").strip(),
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
    except ValidationError:  # which would quote the text
        raise QueryveilError("A decision blocks or allows a query or a word, which is not empty.") from None
    if (made.kind, made.of) == ("block", "word"):
        words = read_as(text, language() if session.log is None else session.log.language)
        if words is not None:
            raise QueryveilError(
                f"Signs around words do not count, so this would block every query with '{words}'; write that if you"
                " want it, or block whole queries."
            )
    return made


def drop(session: Session, form: Form) -> View:
    """Take a decision back."""
    by = form.get("by", "").strip()
    if not by:
        raise QueryveilError("Say who takes the decision back; it is written down.")
    gone = session.decided.take_back(form.get("decision", ""))
    session.change(reviewer=by)
    session.note("took a decision back", by=by, about=f"{gone.kind} a {gone.of}, decided by {gone.by} at {gone.at}")
    return page(session, form)
