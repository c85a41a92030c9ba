"""Decisions: which queries and words are blocked or allowed, by whom, and why."""

from datetime import UTC, datetime

from pydantic import ValidationError

from queryveil.errors import QueryveilError
from queryveil.reports.examples import shape
from queryveil.scrubbing.decisions import Decision
from queryveil.studio.decided import mark
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number


def page(session: Session, form: Form) -> View:
    """All decisions, and the journal."""
    journal = [] if session.project is None else session.project.journal
    decided = [
        (mark(one), shape(one.text, set(), whole=False) if session.state.masked else one.text, one)
        for one in session.decisions
    ]
    return View("decide.html", {"decisions": decided, "journal": journal}, ())


def add(session: Session, form: Form) -> View:
    """Decide about a query or a word."""
    _decide(session, form)
    return page(session, form)


def quick(session: Session, form: Form) -> View:
    """Block a query of a list."""
    _decide(session, {"by": session.state.reviewer, **form})
    return View("blocked.html")


def _decide(session: Session, form: Form) -> None:
    text = form.get("text", "").strip()
    if "query_id" in form:  # clicked in a list, where its text may be masked
        place, log = number(form, "query_id"), session.open_log
        if place >= log.n_queries:
            raise QueryveilError("There is no such query in the log; load the page again.")
        text = str(log.query_text[place].as_py())
    by = form.get("by", "").strip()
    if not by:
        raise QueryveilError("Say who decides first, on the screen Decide.")
    try:
        made = Decision.model_validate(
            {
                "kind": form.get("kind"),
                "of": form.get("of"),
                "text": text,
                "comment": form.get("comment", "").strip(),
                "by": by,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
    except ValidationError:  # which would quote the text
        raise QueryveilError("A decision blocks or allows a query or a word, which is not empty.") from None
    session.decided.add(made)
    session.change(reviewer=by)
    session.note(f"decided: {made.kind} a {made.of}", by=by)


def drop(session: Session, form: Form) -> View:
    """Take a decision back."""
    by = form.get("by", "").strip()
    if not by:
        raise QueryveilError("Say who takes the decision back; it is written down.")
    gone = session.decided.take_back(form.get("decision", ""))
    session.change(reviewer=by)
    session.note("took a decision back", by=by, about=f"{gone.kind} a {gone.of}, decided by {gone.by} at {gone.at}")
    return page(session, form)
