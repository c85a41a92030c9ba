"""Decisions: which queries and words are blocked or allowed, by whom, and why."""

from datetime import UTC, datetime

from queryveil.errors import QueryveilError
from queryveil.methods.decisions import Decision
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number


def page(session: Session, form: Form) -> View:
    """All decisions, and the journal."""
    journal = [] if session.project is None else session.project.journal
    return View("decide.html", {"decisions": list(enumerate(session.decisions)), "journal": journal}, ())


def add(session: Session, form: Form) -> View:
    """Decide about a query or a word."""
    text = form.get("text", "").strip()
    if "query_id" in form:  # clicked in a list, where its text may be masked
        place, log = number(form, "query_id"), session.open_log
        if place >= log.n_queries:
            raise QueryveilError("There is no such query in the log; load the page again.")
        text = str(log.query_text[place].as_py())
    if not text:
        raise QueryveilError("Type the query or the word first.")
    made = Decision(
        kind=form.get("kind", ""),
        of=form.get("of", ""),
        text=text,
        comment=form.get("comment", "").strip(),
        by=form.get("by", "").strip(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    session.decide([*session.decisions, made])
    session.note(f"decided: {made.kind} a {made.of}", by=made.by)
    return page(session, form)


def drop(session: Session, form: Form) -> View:
    """Take a decision back."""
    place = number(form, "place")
    session.decide([one for here, one in enumerate(session.decisions) if here != place])
    session.note("took a decision back", by=form.get("by", "").strip())
    return page(session, form)
