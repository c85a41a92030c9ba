"""Run the examples of README.md, the docs and the notebooks, and write what they print into them.

    python docs/examples.py                    # bring the pages up to date
    python docs/examples.py --check            # say which pages are not
    python docs/examples.py --check README.md  # the same for some pages
    python docs/examples.py --installed        # with the installed command, not with forks of a process (forkserver.py)

The examples of a page run in order, in an empty folder of their own. In a block marked `console`, a line that starts
with `$ ` is a command; in one marked `pycon`, `>>> ` and `... ` start statements. A comment before a block, such as
`<!-- hidden: By how many .. 100+ users -->`, leaves out lines of its output, from the first one that starts so to the
next one that starts so, or to the end if nothing stands behind the dots; `...` marks the place.

A notebook of `examples/` runs in a kernel of its own, and holds what it shows. Pictures may differ from machine to
machine, so a check does not compare them.
"""

import ast
import contextlib
import difflib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import forkserver

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^(?P<note><!-- hidden: (?P<hidden>.*?) -->\n)?```(?P<kind>console|pycon)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def pages() -> list[Path]:
    """All pages that have examples."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    notebooks = sorted((ROOT / "examples").glob("*.ipynb"))
    return [*(page for page in every if _BLOCK.search(page.read_text("utf-8"))), *notebooks]


def environment(tools: Path) -> dict[str, str]:
    """The environment of commands: theirs come first on the path, and print alike everywhere."""
    path = f"{tools}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}


def refreshed(page: Path, tools: Path) -> str:
    """The text of a page with its examples run anew; the commands of the package are in the folder `tools`."""
    if page.suffix == ".ipynb":
        return _run_notebook(page)
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return _BLOCK.sub(lambda block: _run(block, names, tools), page.read_text("utf-8"))


def _run_notebook(page: Path) -> str:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(page, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        options = {"record_timing": False, "coalesce_streams": True, "resources": {"metadata": {"path": folder}}}
        NotebookClient(notebook, kernel_name="python3", **options).execute()
    # Nobody needs the patch of Python, the text behind a preview, or the place where progress was.
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("data", {}).get("text/html") != ""]
        for output in cell.get("outputs", ()):
            if len(output.get("data", ())) > 1:
                del output.data["text/plain"]
    return f"{nbformat.writes(notebook).rstrip()}\n"


def _comparable(page: Path, text: str) -> str:
    """What of a page is the same on every machine."""
    if page.suffix != ".ipynb":
        return text
    notebook = json.loads(text)
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
        for kind in output.get("data", ()):
            if kind.startswith("image/"):
                output["data"][kind] = "a picture"
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def _run(block: re.Match[str], names: dict[str, Any], tools: Path) -> str:
    if block["kind"] == "console":
        body = _run_commands(block["body"], names, block["hidden"], environment(tools))
    else:
        body = _run_statements(block["body"], names, block["hidden"])
    return f"{block['note'] or ''}```{block['kind']}\n{body}```"


def _run_commands(body: str, names: dict[str, Any], hidden: str | None, environment: dict[str, str]) -> str:
    out = ""
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)\n", body, re.MULTILINE):
        # `echo $?` is to tell of the command before it.
        script = f"(exit {names.get('code', 0)}); {command}"
        done = subprocess.run(  # noqa: S603
            ["bash", "-c", script],  # noqa: S607
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        names["code"] = done.returncode
        out += f"$ {command}\n{_shortened(done.stdout, hidden)}"
    return out


def _run_statements(body: str, names: dict[str, Any], hidden: str | None) -> str:
    out = ""
    for example in doctest.DocTestParser().get_examples(body):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(ast.Interactive(ast.parse(example.source).body), "<example>", "single"), names)  # noqa: S102
            except Exception as error:
                print(f"Traceback (most recent call last):\n    ...\n{type(error).__module__}."
                      f"{type(error).__name__}: {error}")  # fmt: skip
        first, *rest = example.source.splitlines()
        out += "".join([f">>> {first}\n", *(f"... {line}\n" for line in rest), _shortened(printed.getvalue(), hidden)])
    return out


def _shortened(text: str, hidden: str | None) -> str:
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    if hidden is not None:
        first, last = (part.strip() for part in hidden.split(".."))
        start = _find(lines, first, 0)
        stop = _find(lines, last, start) + 1 if last else len(lines)
        lines[start:stop] = ["..."]
    # One blank line is enough anywhere, and none is needed at the top.
    lines = [line for before, line in zip(["", *lines], lines, strict=False) if line or before]
    return "".join(f"{line}\n" for line in lines)


def _find(lines: list[str], opening: str, start: int) -> int:
    for at, line in enumerate(lines[start:], start):
        if line.strip().startswith(opening):
            return at
    raise SystemExit(f"No line of the output starts with '{opening}'.")


def main(words: list[str], tools: Path) -> int:
    """Bring the pages up to date, or check them."""
    check = "--check" in words
    named = [ROOT / word for word in words if not word.startswith("--")]
    differ = []
    for page in named or pages():
        before, after = page.read_text("utf-8"), refreshed(page, tools)
        if _comparable(page, before) == _comparable(page, after):
            continue
        differ.append(page)
        name = str(page.relative_to(ROOT))
        if check:
            before, after = _comparable(page, before), _comparable(page, after)
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), name, "what is printed", "", "", 0, ""
            )
            print("\n".join(lines))
        else:
            page.write_text(after, "utf-8")
            print(f"{name}: brought up to date")
    return 1 if differ and check else 0


def run(words: list[str]) -> int:
    """What a command line asks for."""
    installed = Path(sys.executable).parent
    if words[:1] == ["--serve"]:
        forkserver.serve(Path(words[1]), {"queryveil": _queryveil, "examples": _examples})
    if "--installed" in words:
        return main(words, installed)
    with forkserver.commands(Path(__file__), environment(installed)) as tools:
        return main(words, tools)


def _queryveil() -> int:
    from queryveil.cli import main, progress

    progress.EVERY = 1e6  # a busy machine must not add lines
    main()
    return 0


def _examples() -> int:
    """In a fork of the server, whose other command is beside this one."""
    return main(sys.argv[1:], Path(sys.argv[0]).parent)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
