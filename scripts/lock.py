"""Write constraints.txt: the versions that are tested together, with the SHA-256 of every file of each.

    .venv/bin/python scripts/lock.py             # after a change of the dependencies: other versions stay as they are
    .venv/bin/python scripts/lock.py --upgrade   # move every version to the newest that fits
    python scripts/lock.py --pick dev,docs       # print what these extras need, for pip install --require-hashes -r

pip checks hashes only of what a requirements file lists, and cannot check those of a folder. So `make` installs in two
steps: what `--pick` prints, then the package itself without dependencies. Picking needs nothing but Python.

Versions are resolved on the machine that runs this, by the pip of its environment and from the index that pip is set
up with. Files are those for Python 3.11 or later on any platform, and sources.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "constraints.txt"
ALWAYS = ("core", "build")
"""What every installation needs: the package's own dependencies, and what builds it."""
_HEAD = """\
# Versions that were tested together, and the SHA-256 of their files. Written by scripts/lock.py.
# Each names who needs it: the package itself (core), what builds it (build), or its extras.
"""
NOT_LOCKED = ("gpu",)
"""Extras whose packages depend on the driver of a machine."""
_OLDEST = 11


def main(words: list[str]) -> None:
    """Write the file, or print a part of it."""
    parser = argparse.ArgumentParser(description="Write constraints.txt, or print what some extras need of it.")
    parser.add_argument("--upgrade", action="store_true", help="move every version to the newest that fits")
    parser.add_argument("--pick", metavar="EXTRA,...", help="print what these extras need; '' for no extra")
    given = parser.parse_args(words)
    if given.pick is not None:
        print(picked(LOCK.read_text("utf-8"), [extra for extra in given.pick.split(",") if extra]), end="")
    else:
        LOCK.write_text(locked({} if given.upgrade else pins(LOCK.read_text("utf-8"))), "utf-8")


def pins(text: str) -> dict[str, str]:
    """The version of each package in a lock."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def picked(text: str, extras: Iterable[str]) -> str:
    """The part of a lock that some extras need."""
    _, *blocks = text.split("\n\n")
    named = {name for block in blocks for name in _needed_by(block)}
    unknown = sorted(set(extras) - named)
    if unknown:
        sys.exit(f"There is no extra '{unknown[0]}' in {LOCK.name}; run scripts/lock.py after a change of extras.")
    wanted = {*ALWAYS, *extras}
    return "\n".join(f"{block.strip()}\n" for block in blocks if wanted & set(_needed_by(block)))


def _needed_by(block: str) -> list[str]:
    first = block.strip().partition("\n")[0]
    return first.removeprefix("# ").split()


def locked(kept: dict[str, str]) -> str:
    """A lock of everything, made with these versions as far as they go."""
    wanted = requirements()
    found = _resolved([line for lines in wanted.values() for line in lines], kept)
    needed: dict[str, list[str]] = {}
    for name, lines in wanted.items():
        for package in _closure(lines, found):
            needed.setdefault(package, []).append(name)
    blocks = []
    for package in sorted(needed):
        version = found[package]["version"]
        hashes = [f"    --hash=sha256:{digest}" for digest in sorted(set(_digests(package, version)))]
        if not hashes:
            sys.exit(f"The index has no file of {package} {version} for Python 3.{_OLDEST}.")
        blocks.append(f"# {' '.join(needed[package])}\n" + " \\\n".join([f"{package}=={version}", *hashes]) + "\n")
    return "\n".join([_HEAD, *blocks])


def requirements() -> dict[str, list[str]]:
    """What the package itself, its build and each extra ask for."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = stated["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    own = re.compile(rf"{project['name']}\[([\w,]+)\]")

    def expanded(lines: list[str]) -> Iterator[str]:
        for line in lines:
            if inside := own.fullmatch(line):
                for extra in inside[1].split(","):
                    yield from expanded(extras[extra])
            else:
                yield line

    return {
        "core": project["dependencies"],
        "build": stated["build-system"]["requires"],
        **{name: list(expanded(lines)) for name, lines in extras.items() if name not in NOT_LOCKED},
    }


def _resolved(lines: list[str], kept: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The metadata of all that pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report, versions = Path(folder) / "report.json", Path(folder) / "kept.txt"
        versions.write_text("".join(f"{name}=={version}\n" for name, version in kept.items()), "utf-8")
        asked = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report), "-c", str(versions)]
        subprocess.run([sys.executable, "-m", "pip", *asked, *lines], check=True)  # noqa: S603
        installed = json.loads(report.read_text("utf-8"))["install"]
    return {_plain(one["metadata"]["name"]): one["metadata"] for one in installed}


def _closure(lines: list[str], found: dict[str, dict[str, Any]]) -> set[str]:
    """The packages that some requirements lead to."""
    from packaging.requirements import Requirement

    todo, seen = [Requirement(line) for line in lines], set()
    while todo:
        one = todo.pop()
        for extra in ("", *one.extras):
            key = (_plain(one.name), extra)
            if key in seen:
                continue
            seen.add(key)
            for line in found[key[0]].get("requires_dist", ()):
                needed = Requirement(line)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    todo.append(needed)
    return {name for name, _ in seen}


class _Links(HTMLParser):
    """The addresses on a page of an index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value is not None]


def _digests(package: str, version: str) -> Iterator[str]:
    """The SHA-256 of the files of a version that a Python of today can use."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import Version

    links = _Links()
    with urllib.request.urlopen(f"{_index()}/{package}/") as page:  # noqa: S310
        links.feed(page.read().decode())
    for link in links.found:
        parts = urlsplit(link)
        name = unquote(parts.path.rpartition("/")[2])
        try:
            if name.endswith(".whl"):
                _, of, _, tags = parse_wheel_filename(name)
                usable = any(_is_usable(tag.interpreter, tag.abi) for tag in tags)
            else:
                of, usable = parse_sdist_filename(name)[1], True
        except (InvalidSdistFilename, InvalidWheelFilename):
            continue
        if usable and of == Version(version) and parts.fragment.startswith("sha256="):
            yield parts.fragment.removeprefix("sha256=")


def _is_usable(interpreter: str, abi: str) -> bool:
    """Whether wheels of some kind run on CPython 3.11 or later."""
    if interpreter.startswith("py3") or abi.startswith("abi3"):
        return not interpreter.startswith("pp")
    minor = re.fullmatch(r"cp3(\d+)", interpreter)
    return minor is not None and int(minor[1]) >= _OLDEST


def _index() -> str:
    """The address of the index that pip is set up with."""
    from pip._internal.models.index import PyPI

    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    return (done.stdout.strip() or PyPI.simple_url).rstrip("/")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
