"""The log in numbers; or, if its format is not detected, its columns to say what they are."""

from queryveil.formats import FORMATS
from queryveil.release.summary import share
from queryveil.studio.charts import band_figure
from queryveil.studio.mapping import NAMED, mapped, preview
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View


def page(session: Session, form: Form) -> View:
    """What is in the log."""
    found = session.profile
    if found is not None and form.get("look"):  # it was read, but not as somebody wants it
        session.check_unreleased()
        return _columns(session, form)
    if found is None:
        last = session.jobs.last("read")
        if last is None or last.active or last.state == "cancelled":
            return View("log_waiting.html", {"last": last}, ("read",))
        return _columns(session, form)
    tiles = [
        ("Users", f"{found.users:,}", "accounts of the log", ""),
        ("Events", f"{found.events:,}", f"in {found.rows:,} rows", ""),
        ("Distinct queries", f"{found.queries:,}", f"of {found.words:,} words", ""),
        ("Sessions", "–" if session.sessions is None else f"{session.sessions:,}", _sessions(session), ""),
        ("Clicks", f"{found.clicks:,}", "on results", ""),
    ]

    def row(label: str, queries: int, events: int) -> tuple[str, ...]:
        return label, f"{queries:,}", share(queries, found.queries), f"{events:,}", share(events, found.events)

    return View(
        "log.html",
        {
            "profile": found,
            "tiles": tiles,
            "figures": [band_figure(found)],
            "kept": [row(f"k = {one.k}", one.queries, one.events) for one in found.kept],
            "lengths": [row(one.words, one.queries, one.events) for one in found.lengths],
            "languages": [(one.name, f"{one.queries:,}") for one in found.languages],
            "scripts": [(one.name, f"{one.queries:,}") for one in found.scripts],
            "per_user": [(name, f"{value:,.1f}".removesuffix(".0")) for name, value in found.queries_per_user.items()],
            "logs": session.state.logs,
            "again": not session.read_only and session.state.release is None,
        },
        ("read",),
    )


def _columns(session: Session, form: Form) -> View:
    """The columns of the log, to say what they are."""
    reading = session.state.reading
    looked_at = preview(session.state.logs, form.get("format") or reading.format, reading.encoding)
    given = {
        "formats": FORMATS,
        "named": NAMED,
        "reading": reading,
        "preview": looked_at,
        "names": looked_at.shapes if session.state.masked else looked_at.columns,
    }
    return View("log_columns.html", given, ("read",))


def _sessions(session: Session) -> str:
    if session.sessions is None or session.profile is None:
        return "the log has no times"
    return f"{session.profile.events / max(session.sessions, 1):.1f} events each"


def map_columns(session: Session, form: Form) -> View:
    """Read the log again, as somebody says that its columns are to be understood."""
    if form.get("look"):  # another format is looked at, nothing is read
        return page(session, form)
    session.read_as(mapped(session.state.logs, form, session.state.reading))
    return page(session, form)
