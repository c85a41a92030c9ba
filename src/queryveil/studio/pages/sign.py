"""The release, its verification, and a signed statement; the recipe and the commands that repeat it."""

from pathlib import Path

from queryveil.assess.signing import Review, new_key
from queryveil.errors import QueryveilError
from queryveil.studio import signing
from queryveil.studio.repeat import commands
from queryveil.studio.session import Session
from queryveil.studio.views import Form, View

KEY = "signing.key"


def page(session: Session, form: Form) -> View:
    """What is to be signed."""
    release, found = session.release, session.found
    assert session.project is not None  # noqa: S101
    try:
        recipe = (session.run / "recipe.toml").read_text("utf-8") if release is not None else ""
    except OSError:
        raise QueryveilError(f"The recipe of {session.run} cannot be read; make the release again.") from None
    own = session.project.file(KEY)
    return View(
        "sign.html",
        {
            "release": release,
            "folder": None if release is None else session.release_folder,
            "found": found,
            "outdated": session.outdated,
            "recipe": "\n".join(line for line in recipe.splitlines() if not line.startswith("seed")),
            "recipe_file": None if release is None else session.run / "recipe.toml",
            "commands": [] if release is None else commands(session),
            "key": own if own.exists() else "",
            "manifest": "" if release is None else session.manifest_sha256,
        },
        ("read", "anonymize", "check", "judge", "sign"),
    )


def key(session: Session, form: Form) -> View:
    """Make a key to sign with, in the project."""
    if session.project is None or session.read_only:
        raise QueryveilError("This studio only looks at a release.")
    new_key(session.project.file(KEY))
    session.note("made a key", by=form.get("name", "").strip())
    return page(session, form)


def sign(session: Session, form: Form) -> View:
    """Sign the release."""
    place = form.get("key", "").strip()
    if not place or "\0" in place:
        raise QueryveilError("Name the file of your private key, or make one.")
    review = Review.by(form.get("name", ""), form.get("comment", ""))
    signing.sign(session, Path(place), review, form.get("manifest", ""), with_policy="policy" in form)
    session.change(reviewer=review.name)
    return page(session, form)
