"""Long work: what is under way, what to begin, what to cancel."""

from collections.abc import Callable

from queryveil.errors import QueryveilError
from queryveil.studio.jobs import Job
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View, number

_STARTED: dict[str, Callable[[Session], Job]] = {
    "read": Session.read,
    "count": Session.count,
    "anonymize": Session.anonymize,
    "check": Session.check,
    "judge": Session.judge,
}
_SHOWN = 3


def jobs(session: Session, form: Form) -> View:
    """The jobs that are under way, and how the last ones ended; of each kind only the newest."""
    newest = {job.kind: job for job in reversed(session.jobs.all)}
    known = sorted(newest.values(), key=lambda job: -job.id)
    active = [job for job in known if job.active]
    return View("jobs.html", {"jobs": active + [job for job in known if not job.active][: _SHOWN - len(active)]})


def start(session: Session, form: Form) -> View:
    """Begin a job."""
    kind = form.get("kind", "")
    if kind not in _STARTED:
        raise QueryveilError("There is no such work; load the page again.")
    with session.lock:
        if "steps" in form:  # beside what is chosen, which is then what is shown
            session.check_steps(form["steps"])
        _STARTED[kind](session)
    return jobs(session, form)


def cancel(session: Session, form: Form) -> View:
    """Cancel a job."""
    session.jobs.cancel(number(form, "id"))
    return jobs(session, form)
