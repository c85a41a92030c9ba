"""What the project says about itself is true: docs, pins, version, layers, and a command line that starts quickly."""

import configparser
import re
import signal
import subprocess
import sys
import time
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import examples
import forkserver
import pytest
import typer
from packaging.requirements import Requirement

import queryveil
from queryveil import cli
from queryveil.claims import CLAIMS
from queryveil.formats import FORMATS
from queryveil.methods import METHODS, STEPS, parameters_of
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.release.manifest import Manifest
from queryveil.text import LANGUAGES, language

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
INSTALLED = Path(sys.executable).parent


_script = spec_from_file_location("lock", ROOT / "scripts" / "lock.py")
lock = module_from_spec(_script)
_script.loader.exec_module(lock)


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def verbs() -> list[str]:
    return sorted(typer.main.get_command(cli.build([])).commands)


def pages_with_examples() -> list[str]:
    return [str(page.relative_to(ROOT)) for page in examples.pages()]


def direct_dependencies() -> list[Requirement]:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    # An extra may take in another of the same package.
    return [Requirement(line) for line in lines if not line.startswith(f"{project['name']}[")]


def pins() -> dict[str, str]:
    return {plain(name): version for name, version in lock.pins(text("constraints.txt")).items()}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("method", sorted(METHODS.keys() & STEPS.keys()))
def test_every_method_has_a_page_with_its_parameters_and_limits(method):
    page = text(f"docs/methods/{method}.md")
    assert f"<!-- parameters: {method} -->" in page
    assert f"<!-- limits: {method} -->" in page
    assert f"methods/{method}.md" in text("mkdocs.yml")
    assert f"]({method}.md)" in text("docs/methods/index.md")


def test_pipelines_have_a_page_with_the_parameters_of_what_is_only_a_step():
    page = text("docs/methods/pipeline.md")
    for step in STEPS.keys() - METHODS.keys():
        assert f"<!-- parameters: {step} -->" in page
    assert "](pipeline.md)" in text("docs/methods/index.md")


def commands_of_papers() -> list[tuple[str, str, str]]:
    """Of every row of a table on the page about papers: its section, its first cell and its last, the command."""
    found = []
    for section in re.split(r"^## ", text("docs/papers.md"), flags=re.MULTILINE):
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
            head, _, *rows = [[cell.strip() for cell in row[1:-1].split("|")] for row in table.splitlines()]
            assert head[-1] == "command", head
            found += [(section, row[0], row[-1] if len(row) == len(head) else "") for row in rows]
    return found


def test_every_row_about_papers_has_a_command():
    """A verb with its arguments, a test to run, a letter that a command of the section has, or Python of the page."""
    rows = commands_of_papers()
    assert len(rows) > 100
    for section, what, command in rows:
        letters = set(re.findall(r"\b[A-Z]\b", re.sub(r"`[^`]*`", "", command)))
        assert letters <= set(re.findall(r"^queryveil .* # ([A-Z])$", section, re.MULTILINE)), what
        said = re.findall(r"`([^`]+)`", command)
        assert all(one.split()[0] in {"make", *verbs()} for one in said), what
        python = "Python" in command and "```python" in (text("docs/papers.md") if "](#" in command else section)
        assert letters or said or python, what
        for name in re.findall(r'-k (\w+)"', command):
            tests = (file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
            assert any(re.search(rf"def test_\w*{name}", one) for one in tests), name


@pytest.mark.parametrize(("method", "name"), [(m, p.name) for m in STEPS for p in parameters_of(STEPS[m])])
def test_every_parameter_says_what_it_is(method, name):
    parameter = next(p for p in parameters_of(STEPS[method]) if p.name == name)
    assert len(parameter.help.split()) >= 3


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_a_section_with_its_options(verb):
    page = text("docs/cli.md")
    assert f"\n## {verb}\n" in page
    assert f"<!-- options: {verb} -->" in page


@pytest.mark.parametrize("name", queryveil.__all__)
def test_every_public_name_has_a_section(name):
    assert f"\n## {name}\n" in text("docs/api.md")


def test_every_public_name_can_be_had():
    assert all(getattr(queryveil, name).__name__ == name for name in queryveil.__all__)


@pytest.mark.parametrize("name", Manifest.model_fields)
def test_every_field_of_the_manifest_is_described(name):
    assert f"\n| `{name}` |" in text("docs/releases.md")


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.__name__)
def test_every_claim_is_described(claim):
    assert f"\n| `{claim.model_fields['kind'].default}` |" in text("docs/releases.md")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_described(name):
    assert f"\n| `{name}` |" in text("docs/formats.md")


@pytest.mark.parametrize("id", LANGUAGES)
def test_every_language_is_described(id):
    assert f"\n| `{id}` | {language(id).label} |" in text("docs/languages.md")


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_is_shown(name):
    page = "docs/methods/rules.md" if load_recipe(name).method != "pipeline" else f"docs/pipelines/{name}.md"
    assert f"<!-- recipe: {name} -->" in text(page)


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", text("mkdocs.yml")))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


@pytest.fixture(scope="module")
def commands():
    """A folder with commands that start at once."""
    with forkserver.commands(DOCS / "examples.py", examples.environment(INSTALLED)) as folder:
        yield folder


def test_a_command_in_a_fork_does_what_the_installed_one_does(commands, tmp_path):
    (tmp_path / "log.csv").write_text("user,query\na,x\nb,x\n")
    release = ["anonymize", "log.csv", "--method", "equality", "-k", "2", "--seed", "1", "-o", "r", "--overwrite"]
    for words in (["--version"], ["profile"], ["profile", "-"], release, ["verify", "r", "--original", "no.csv"]):
        found = []
        for folder in (commands, INSTALLED):
            with (tmp_path / "log.csv").open() as log:
                done = subprocess.run(
                    [folder / "queryveil", *words], cwd=tmp_path, stdin=log, capture_output=True, check=False,
                    env=examples.environment(folder),
                )  # fmt: skip
            files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
            found.append((done.returncode, done.stdout, done.stderr, files))
        assert found[0] == found[1]


def test_a_command_in_a_fork_is_stopped_as_any_other(commands, tmp_path):
    with subprocess.Popen([commands / "queryveil", "profile", "-"], cwd=tmp_path, stdin=subprocess.PIPE) as run:
        while run.poll() is None:
            run.terminate()
            time.sleep(0.1)
    # Before the command looks out for signals, they end it as they end any process.
    assert run.returncode in (143, -signal.SIGTERM)


@pytest.mark.parametrize("page", pages_with_examples())
def test_the_examples_of_a_page_print_what_it_says(page, commands):
    done = subprocess.run([commands / "examples", "--check", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"Bring the page up to date with docs/examples.py.\n{done.stdout}{done.stderr}"


def test_constraints_are_names_and_versions_with_hashes_alone():
    head, *blocks = text("constraints.txt").rstrip("\n").split("\n\n")
    assert all(line.startswith("# ") for line in head.splitlines())
    hashes = r"( \\\n    --hash=sha256:[0-9a-f]{64})+"
    assert [block for block in blocks if not re.fullmatch(rf"# [a-z ]+\n[a-z0-9-]+==[a-z0-9.!+]+{hashes}", block)] == []


def test_what_is_picked_for_an_extra_is_what_it_needs_and_what_everybody_does():
    whole = text("constraints.txt")
    core, signing = lock.pins(lock.picked(whole, [])), lock.pins(lock.picked(whole, ["sign"]))
    assert {"duckdb", "hatchling"} <= core.keys()
    assert not {"cryptography", "pytest"} & core.keys()
    assert signing.keys() - core.keys() == {"cryptography", "cffi", "pycparser"}


@pytest.mark.parametrize("extra", sorted(lock.requirements().keys() - {"core", "build"}))
def test_what_an_extra_asks_for_is_picked_for_it(extra):
    names = lock.pins(lock.picked(text("constraints.txt"), [extra]))
    assert {plain(Requirement(line).name) for line in lock.requirements()[extra]} <= {plain(name) for name in names}


def test_an_extra_that_is_not_locked_is_refused():
    with pytest.raises(SystemExit, match="no extra 'nope'"):
        lock.picked(text("constraints.txt"), ["nope"])


def test_the_build_backend_is_pinned_to_the_locked_version():
    (backend,) = tomllib.loads(text("pyproject.toml"))["build-system"]["requires"]
    assert backend == f"hatchling=={pins()['hatchling']}"


@pytest.mark.parametrize("name", sorted({*pins(), *(plain(needed.name) for needed in direct_dependencies())}))
def test_every_dependency_is_named_with_its_licence(name):
    listed = text("NOTICE").partition("licences of their own")[2].replace("\n  ", " ")
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert [line for line in lines if name in re.split(", ", line.partition(": ")[2].rstrip("."))] != []


def not_locked():
    """The packages of extras that the lock leaves out."""
    extras = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    return {plain(Requirement(line).name) for extra in lock.NOT_LOCKED for line in extras[extra]}


@pytest.mark.parametrize("needed", direct_dependencies(), ids=str)
def test_every_direct_dependency_is_pinned_to_a_version_that_is_allowed(needed):
    if plain(needed.name) not in not_locked():
        assert needed.specifier.contains(pins()[plain(needed.name)], prereleases=True)


def test_only_what_depends_on_a_driver_is_not_locked():
    assert not_locked() == {"torch", "triton"}
    assert not not_locked() & pins().keys()


def test_the_newest_version_in_the_changelog_is_this_one():
    assert re.findall(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.MULTILINE)[0] == queryveil.__version__


def test_the_picture_of_the_layers_is_the_one_that_is_checked():
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    checked = rules["importlinter:contract:layers"]["layers"].strip().splitlines()
    picture = re.search(r"## Layers.*?```text\n(.*?)```", text("CONTRIBUTING.md"), re.DOTALL)
    assert picture is not None
    # Names stand in columns, in front of a sentence.
    drawn = [line[:25].split() for line in picture[1].splitlines()]
    assert drawn == [line.replace("|", " ").split() for line in checked]


def test_the_changelog_has_the_sections_of_keep_a_changelog_alone():
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for version in text("CHANGELOG.md").split("\n## [")[1:]:
        found = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert found == [kind for kind in kinds if kind in found]
    # The site includes the page, and lies elsewhere than the pages it would link to.
    assert re.findall(r"\]\((?!https?://)", text("CHANGELOG.md")) == []


def test_the_version_to_cite_and_the_one_that_is_supported_are_this_one():
    assert f"\nversion: {queryveil.__version__}\n" in text("CITATION.cff")
    assert f"\n| {queryveil.__version__.rpartition('.')[0]} | yes |\n" in text("SECURITY.md")


def test_public_checks_are_make_targets_and_may_only_read():
    workflow = text(".github/workflows/ci.yml")
    targets = re.findall(r"run: make (\w+)", workflow) + re.search(r"target: \[(.+)\]", workflow)[1].split(", ")
    assert set(targets) == {"lint", "typecheck", "docs", "test", "package"}
    assert re.findall(r"^permissions:\n((?:  .+\n)+)", workflow, re.MULTILINE) == ["  contents: read\n"]
    assert "secrets." not in workflow
    actions = re.findall(r"uses: (\S+)", workflow)
    assert [action for action in actions if not re.fullmatch(r"actions/[\w-]+@v\d+", action)] == []


def test_every_file_that_contributors_are_sent_to_is_there():
    named = re.findall(r"`([\w./-]+\.(?:py|md|txt|yml|toml)|\.[\w-]+(?:/[\w-]+)?|\w+/)`", text("CONTRIBUTING.md"))
    places = [ROOT, ROOT / "src/queryveil", *(ROOT / "src/queryveil").rglob("*/"), ROOT / "scripts"]
    lost = [name for name in named if "NAME" not in name and not any((place / name).exists() for place in places)]
    assert named
    assert lost == []


def test_help_does_not_wait_for_slow_imports():
    script = (
        "import sys; sys.argv = ['queryveil', '--help']\n"
        "from queryveil.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('SLOW', sorted({'altair', 'numpy', 'duckdb', 'pyarrow', 'numba', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "anonymize" in done.stdout
    assert done.stdout.splitlines()[-1] == "SLOW []"


@pytest.mark.parametrize("target", ["demo", "test", "fuzz", "lint", "typecheck", "bench", "docs", "package", "clean"])
def test_every_make_target_is_there_and_in_the_help(target):
    makefile = text("Makefile")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert f"make {target} " in makefile
