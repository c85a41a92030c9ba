"""Is it good enough: verification, measures, attacks, the policy, and how other methods compare."""

from queryveil.errors import QueryveilError
from queryveil.methods import METHODS
from queryveil.release.summary import kept_rows
from queryveil.reports import charts, words
from queryveil.reports.frontiers import frontier_figure
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View

_MET = {True: "yes", False: "no", None: "cannot be said"}


def page(session: Session, form: Form) -> View:
    """What was found about the release, and the comparison."""
    found, release = session.found, session.release
    judged = found.judgement
    figures = [] if found.evaluation is None else [charts.utility(found.evaluation.measured)]
    figures += [] if found.findings is None else [charts.attacks(found.findings)]
    comparison = session.comparison
    frontier = None if comparison is None else frontier_figure(comparison)
    return View(
        "judge.html",
        {
            "release": release,
            "named": "" if release is None else words.named(release.manifest).replace("\N{NO-BREAK SPACE}", " "),
            "lead": [] if release is None else words.lead(release.manifest),
            "kept": [] if release is None else kept_rows(release.manifest),
            "outdated": session.outdated,
            "found": found,
            "judged": judged,
            "judged_as": "" if judged is None else {True: "meets", False: "misses", None: "open"}[judged.meets],
            "criteria": []
            if judged is None
            else [(one.label, one.limit_text, one.found_text, _MET[one.met], one.why) for one in judged.criteria],
            "figures": figures,
            "frontier": frontier,
            "configurations": []
            if comparison is None
            else [one for one in comparison.configurations if one.status == "done"],
            "meets": None if comparison is None else comparison.meets,
            "methods": [(name, method.summary) for name, method in METHODS.items()],
            "compared": session.state.compared or ["equality", "affinity"],
            "ks": session.state.compared_ks or [5, 10],
        },
        ("read", "anonymize", "check", "judge", "compare"),
    )


def compare(session: Session, form: Form) -> View:
    """Compare methods."""
    methods = [name for name in METHODS if f"method.{name}" in form]
    ks = [part.strip() for part in form.get("ks", "").split(",") if part.strip()]
    if not methods:
        raise QueryveilError("Choose at least one method to compare.")
    if not ks or not all(k.isascii() and k.isdigit() and 2 <= int(k) <= 10**6 for k in ks):
        raise QueryveilError("Values of k are whole numbers of at least 2, with commas between them.")
    session.compare(methods, [int(k) for k in ks])
    return page(session, form)
