"""The command lines that repeat what was done here."""

import shlex

from queryveil.studio.project import DECISIONS
from queryveil.studio.session import Session
from queryveil.studio.settings import reading_options


def commands(session: Session) -> list[str]:
    """The commands that make the release again, check it, measure it, attack it and sign it."""
    run, logs = session.run, session.state.logs
    read = reading_options(session.state.reading)
    original = [word for log in logs for word in ("--original", log)]
    known = ["--user-map", run / "users.csv"] if (run / "users.csv").exists() else []
    listed = ["--list", run / DECISIONS] if (run / DECISIONS).exists() else []
    certificate = ["--certificate", run / "release.certificate"]
    release = [run / "release", *original, *read]
    return [
        _line("anonymize", *logs, *read, "--recipe", run / "recipe.toml", "-o", "again"),
        _line("verify", *release, *certificate, *listed),
        _line("evaluate", *release, *known),
        _line("attack", *release, *known, "--policy", "default", "--json"),
        _line("sign", *release, *certificate, *listed, "--attacks", run / "attacks.json", "--key", "KEY"),
    ]


def _line(verb: str, *words: object) -> str:
    return shlex.join(["queryveil", verb, *map(str, words)])
