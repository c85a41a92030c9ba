"""One query: is it in, why, and what stands behind it."""

from queryveil.errors import QueryveilError
from queryveil.studio import asking
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number


def page(session: Session, form: Form) -> View:
    """A place to type a query."""
    return View("ask.html", {"answer": None}, ("read", "anonymize"))


def answer(session: Session, form: Form) -> View:
    """What is known about the query that somebody typed or clicked."""
    clicked = number(form, "query_id") if "query_id" in form else None
    text = form.get("query", "")
    if clicked is None and not text.strip():
        raise QueryveilError("Type a query first.")
    return View("answer.html", {"answer": asking.ask(session, text, clicked)})
