"""What to release: a method or a pipeline, with sliders that answer from tables."""

from queryveil.errors import QueryveilError
from queryveil.methods import METHODS, STEPS, Affinity, Equality, Pipeline
from queryveil.methods.recipe import RecipeStep, shipped
from queryveil.release.summary import share
from queryveil.reports.charts import kept
from queryveil.studio.decided import mark
from queryveil.studio.session import Session
from queryveil.studio.settings import begun_with, beside_sliders, fields_of, method_of, slid, steps_of
from queryveil.studio.views import Form, View, number
from queryveil.text.show import percent


def page(session: Session, form: Form) -> View:
    """The method with its parameters, and what it releases."""
    return View(
        "choose.html",
        {
            "methods": [(name, method.summary) for name, method in METHODS.items() if method is not Pipeline],
            "recipes": list(shipped()),
            "steps": fields_of(session.state.steps),
            "all_steps": [(name, step.summary) for name, step in STEPS.items()],
            "summaries": {name: step.summary for name, step in STEPS.items()},
            **_numbers(session),
        },
        ("read", "count", "anonymize"),
    )


def begin(session: Session, form: Form) -> View:
    """Begin with a method or a recipe."""
    session.change(steps=begun_with(form.get("name", "")))
    return page(session, form)


def at(session: Session, form: Form) -> View:
    """Move a slider, or set a parameter."""
    with session.lock:
        session.check_steps(form.get("steps", ""))
        steps = steps_of(form, session.state.steps)
        method_of(steps)
        session.change(steps=steps, later=True)
    return View("numbers.html", _numbers(session))


def add_step(session: Session, form: Form) -> View:
    """Add a step: scrubbing comes first, everything else last."""
    name = form.get("name", "")
    if name not in STEPS:
        raise QueryveilError("There is no such step; load the page again.")
    step = RecipeStep(method=name, parameters={"k": 5} if "k" in STEPS[name].model_fields else {})
    with session.lock:
        steps = [step, *session.state.steps] if name == "scrub" else [*session.state.steps, step]
        method_of(steps)
        session.change(steps=steps)
    return page(session, form)


def drop_step(session: Session, form: Form) -> View:
    """Take a step away."""
    place = number(form, "place")
    with session.lock:
        session.check_steps(form.get("steps", ""))
        steps = [step for here, step in enumerate(session.state.steps) if here != place]
        if not steps:
            raise QueryveilError("A release has at least one step; choose another method instead.")
        method_of(steps)
        session.change(steps=steps)
    return page(session, form)


def load(session: Session, form: Form) -> View:
    """Take the parameters of a point of the comparison."""
    known = () if session.comparison is None else session.comparison.configurations
    found = next((one for one in known if one.name == form.get("name")), None)
    if found is None:
        raise QueryveilError("The comparison has no such release; load the page again.")
    steps = found.parameters["steps"] if found.method == Pipeline.name else None
    if steps is None:
        session.change(steps=[RecipeStep(method=found.method, parameters=found.parameters)])
    else:
        session.change(steps=[RecipeStep(**step) for step in steps])
    return page(session, form)


def _numbers(session: Session) -> dict[str, object]:
    """What the chosen setting releases, by the tables; or why they do not say."""
    chosen, tables, log = slid(session.state.steps), session.grid, session.profile
    nothing: dict[str, object] = {"tiles": [], "figures": [], "why": "", "notes": []}
    nothing |= {"steps_mark": mark(session.state.steps)}
    if chosen is None:
        named = " then ".join(step.method for step in session.state.steps)
        return nothing | {
            "why": f"Sliders follow equality and affinity. What {named} releases is counted when it is made."
        }
    if tables is None or log is None:
        return nothing | {"why": "The sliders have no numbers yet: count what every setting releases, once."}
    known = {name: value for name, value in tables.made_of["parameters"].items() if name in beside_sliders(chosen)}
    if known != beside_sliders(chosen) or (isinstance(chosen, Equality) and chosen.jitter is not None):
        return nothing | {"why": "The numbers were counted for other parameters than these: count again."}
    words = chosen.min_term_users if isinstance(chosen, Affinity) else None
    theta = chosen.theta if isinstance(chosen, Affinity) else None
    try:
        found = tables.at("equality" if theta is None else "affinity", k=chosen.k, theta=theta, min_word_users=words)
    except QueryveilError as error:
        return nothing | {"why": str(error)}
    risk, note = "not measured", "there is no release at least as large"
    if found.linkage is not None:
        high = found.linkage.share if found.linkage.high is None else found.linkage.high
        risk = percent(found.linkage.share)
        near = f"k = {found.linkage.k}" + ("" if found.linkage.theta is None else f", theta = {found.linkage.theta:g}")
        note = f"up to {percent(high)}, " + (
            "measured" if found.linkage.measured else f"measured at {near}, which holds more"
        )
    tiles = [
        ("Distinct queries", f"{found.queries:,}", f"{share(found.queries, log.queries)} of the log", ""),
        ("Events", f"{found.events:,}", f"{share(found.events, log.events)} of the log", ""),
        ("Exposed queries", f"{found.exposed_queries:,}", f"{found.few_queries:,} of fewer than {chosen.k} people", ""),
        ("Linkage risk", risk, note, ""),
    ]
    notes = []
    if len(session.state.steps) > 1:
        notes.append(f"These are the numbers of {chosen.name} on the whole log; the other steps change them.")
    if session.decisions:
        notes.append("Decisions come on top: what they block is still counted here.")
    return nothing | {"tiles": tiles, "figures": [kept(found.by_band)], "notes": notes}
