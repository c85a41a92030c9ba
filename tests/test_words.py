"""Words that readers would stop at stay out of the code, the README and the docs; messages name options in one way."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.methods import METHODS, parameters_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "queryveil"

PHRASES = {
    r"\bby lot\b": "at random, randomly permuted",
    r"\bdealt\b": "at random, randomly permuted",
    r"\btold\b": "shown, reported, detected, distinguished",
    r"\bdecide[sd]? all that is random\b": "random seed",
    r"\bfresh[ _](user[ _])?(ids?|users?)\b": "pseudonyms",
    r"\bbeats?\b": "is above its baseline and its control, succeeds",
    r"\bplanting\b": "Sybil attack (planted accounts)",
    r"\bwhat is (kept|left) of\b": "retention of",
    r"\bleaves the house\b": "is released",
    r"\bvanity and pii\b": "residual personal data",
    r"\bclassic risks?\b": "prosecutor, journalist and marketer risk",
    r"\bknowledge bases?\b": "taxonomy",
    r"\bdirectory of the web\b": "web directory",
    r"\bdirectory that was built\b": "web directory",
    r"\brelease director(y|ies)\b": "folder of the release",
    r"\binterests (of users )?left\b": "profile retention (SRP)",
    r"\bcertainty of terms left\b": "term precision (1 - NCP)",
    r"\bwhoever\b": "two sentences",
    r"\bof whom\b": "two sentences",
    r"\bqueryveil (link|knowledge|directory) ": "queryveil categorize, taxonomy, web-directory",
}
"""Regular expressions for what not to write, and what to write instead."""

NAMES = {"crowd", "gifts", "lots", "said", "searchers", "tok", "told", "Facts", "Said", "Wanted"}
"""Words that are no part of a name in the code."""

OLD_NAMES = {"src/queryveil/release/earlier.py"}
"""Quotes what version 0.1 wrote."""


def pages() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    yield ROOT / "benchmarks" / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))
    for ending in ("*.py", "*.html", "*.toml"):
        yield from sorted(SOURCE.rglob(ending))


def phrases_in(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    if path.name == "CHANGELOG.md":
        # Earlier versions had their own words, and code may be an old name.
        text = re.sub(r"`[^`]*`", "", text.partition("\n## [0.1")[0])
    # A phrase may go on in the next line, behind a quote or the mark of a comment.
    text = re.sub(r"""["'#\s]+""", " ", text).lower()
    return [
        f"'{found[0]}' (write: {instead})" for phrase, instead in PHRASES.items() if (found := re.search(phrase, text))
    ]


def test_phrases_to_avoid():
    found = {str(path.relative_to(ROOT)): phrases for path in pages() if (phrases := phrases_in(path))}
    wrong = {path: phrases for path, phrases in found.items() if path not in OLD_NAMES}
    assert not wrong, "\n".join(f"{path}: {'; '.join(phrases)}" for path, phrases in wrong.items())


@pytest.mark.parametrize("text", ["drawn\nby lot", 'f"drawn by"\n    " lot"', "# drawn by\n# lot", "Drawn By Lot."])
def test_a_phrase_over_two_lines_is_found(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    assert len(phrases_in(tmp_path / "a.py")) == 1


def names_in(path: Path) -> set[str]:
    """All names that a file of code defines or uses."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    found = (getattr(node, field, None) for node in nodes for field in ("id", "attr", "name", "arg"))
    return {name for name in found if name is not None}


def test_names_to_avoid():
    wrong = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in names_in(path)
        if NAMES & {*name.split("_")}
    ]
    assert not wrong, "\n".join(wrong)


_COMMANDS = {
    "reports/comparisons.py",
    "reports/page.py",
    "reports/releases.py",
    "studio/repeat.py",
    "studio/settings.py",
}
"""Whole command lines and style sheets."""


_FILES = {"release/earlier.py", "release/summary.py", "assess/policy/rules.py"}
"""Sentences about what stands in recipes, manifests and policies, where a parameter has one name for everybody."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file with their lines, without docstrings and what `option(python=...)` says in Python only."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    other = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    other |= {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "python"}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in other:
            yield node.lineno, node.value


def parameter_names() -> set[str]:
    """The names of parameters of methods and public functions that are no words."""
    public = [one for name in qv.__all__ if inspect.isfunction(one := getattr(qv, name))]
    found = {name for function in public for name in inspect.signature(function).parameters}
    found |= {one.name for method in METHODS.values() for one in parameters_of(method)}
    return {name for name in found if "_" in name}


def test_messages_of_the_library_name_options_by_the_one_function_for_it():
    option = r"(?<![\w-])--[a-z]"
    # A name alone is a key, and with `=` a setting of DuckDB.
    in_python = rf"(^|\w)' (parameter|argument)|\b({'|'.join(sorted(parameter_names()))})\b(?! =)"
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("cli/") or name in _COMMANDS | {"errors.py"}:
            continue
        for line, text in texts(path):
            plain = re.sub(r"'queryveil [^']*'|var\(--\w+\)", "", text)
            python = name not in _FILES and " " in text and re.search(in_python, text)
            wrong += [f"{name}:{line}: {text}"] if re.search(option, plain) or python else []
    assert not wrong, "\n".join(wrong)
