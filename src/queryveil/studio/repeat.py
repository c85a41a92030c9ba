"""The command lines that repeat what was done here."""

import shlex
from pathlib import Path

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
    certificate: list[object] = ["--certificate", run / "release.certificate"]
    release: list[object] = [run / "release", *original, *read]
    return [
        _line("anonymize", *logs, *read, "--recipe", run / "recipe.toml", "-o", "again"),
        _line("verify", *release, *certificate, *listed),
        _line("evaluate", *release, *known),
        _line("attack", *release, *known, *listed, "--policy", session.policy_file, "--json"),
        *_sign(session, release, [*certificate, *listed]),
    ]


def _sign(session: Session, release: list[object], evidence: list[object]) -> list[str]:
    """The command that signs as it was signed here; none if it was not."""
    signed = session.state.signed
    if signed is None:
        return []
    words: list[object] = [
        "--key",
        Path(signed.key).absolute(),
        "--reviewer",
        signed.name,
        "--reviewed-on",
        signed.date,
    ]
    words += ["--comment", signed.comment] if signed.comment else []
    words += ["--attacks", session.run / "attacks.json"] if signed.attacks else []
    words += ["--policy", session.policy_file] if signed.policy else []
    return [_line("sign", *release, *evidence, *words, "-o", "again.statement.json")]


def _line(verb: str, *words: object) -> str:
    return shlex.join(["queryveil", verb, *map(str, words)])
