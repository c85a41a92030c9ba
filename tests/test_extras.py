"""What only some features need is an extra: without it all else works, and a sentence says how to get it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.errors import OPTIONAL, QueryveilError, missing, require

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
SCRUB = "anonymize log.tsv --method equality -k 5 --scrub mask -o made"
WITHOUT = """
import sys
class Absent:
    def find_spec(name, path, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Absent)
"""
MAIN = "sys.argv = ['queryveil', *{words!r}]\nfrom queryveil.cli import main\nmain()\n"


def names(lines):
    return {re.match(r"[\w.-]+", line)[0] for line in lines if not line.startswith("queryveil[")}


def python(script, cwd):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=cwd)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def without(modules, words, cwd):
    """Run the command line where some modules cannot be imported."""
    return python(WITHOUT.format(names=modules) + MAIN.format(words=[str(word) for word in words]), cwd)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extras")
    rows = [f"{user}\t{query}\n" for user in range(6) for query in ("cats", "dogs", f"call 212-555-012{user}")]
    (folder / "log.tsv").write_text("user\tquery\n" + "".join(rows), "utf-8")
    qv.Equality(k=5).anonymize(qv.read_log(folder / "log.tsv"), seed=1).save(folder / "release")
    (folder / "paths.tsv").write_text("Top/Pets/Cats\thttp://cats.example.com/\n", "utf-8")
    return folder


@pytest.mark.parametrize("extra", sorted({one.extra for one in OPTIONAL.values()}))
def test_an_extra_installs_what_the_sentence_about_it_names(extra):
    assert names(EXTRAS[extra]) == {one.package for one in OPTIONAL.values() if one.extra == extra}


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_tables_for_readers_name_every_extra(page):
    table = re.search(r"^\| extra \|.*\n\|---\|---\|\n((?:\|.*\n)+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)[1]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(EXTRAS.keys() - {"dev", "docs", "bench"})


def test_what_is_in_an_extra_is_not_asked_for_by_everybody():
    assert not names(PROJECT["dependencies"]) & {one.package for one in OPTIONAL.values()}


def test_all_is_every_extra_that_a_user_may_want_and_developers_get_it():
    (line,) = EXTRAS["all"]
    # PyTorch for a graphics processor is gigabytes, and which build fits depends on the driver.
    assert line == f"queryveil[{','.join(sorted({one.extra for one in OPTIONAL.values()} - {'gpu'}))}]"
    assert "queryveil[all,docs]" in EXTRAS["dev"]


def test_the_demo_installs_what_its_commands_need():
    makefile = (Path(__file__).resolve().parent.parent / "Makefile").read_text("utf-8")
    installed = re.search(r"^DEMO := ([\w,]+)$", makefile, re.MULTILINE)[1].split(",")
    assert "$(VENV)/.fetched-$(DEMO)" in makefile
    assert {"attack", "dp", "report", "search"} <= set(installed)


def test_without_any_extra_a_log_is_read_anonymized_and_verified(home):
    script = """
import importlib, pkgutil
import queryveil as qv
for module in pkgutil.walk_packages(qv.__path__, "queryveil."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
log = qv.read_log("log.tsv")
qv.Equality(k=5).anonymize(log, seed=1).save("bare")
print(qv.verify("bare", log).holds)
"""
    done = python(WITHOUT.format(names=sorted(OPTIONAL)) + script, home)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


@pytest.mark.parametrize(
    ("module", "words", "sentence"),
    [
        ("altair", "sweep log.tsv -k 2 --chart sweep.svg", "A chart needs altair"),
        ("vl_convert", "sweep log.tsv -k 2 --chart sweep.svg", "A chart needs vl-convert-python"),
        ("altair", "compare log.tsv -o compared", "A report needs altair"),
        ("jinja2", "report release --original log.tsv -o report.html", "A report needs jinja2"),
        ("markupsafe", "report release --original log.tsv -o report.html", "A report needs markupsafe"),
        ("altair", "reproduce erola2011 log.tsv -o reproduced", "A chart needs altair"),
        ("phonenumbers", SCRUB, "Scrubbing needs phonenumbers"),
        ("stdnum", SCRUB, "Scrubbing needs python-stdnum"),
        ("tantivy", "web-directory build paths.tsv -o sites.qvd", "A web directory needs tantivy"),
        ("publicsuffixlist", "web-directory build paths.tsv -o sites.qvd", "A web directory needs publicsuffixlist"),
        ("opendp", "anonymize log.tsv --method zealous -o made", "Differentially private noise needs opendp"),
        ("starlette", "studio log.tsv", "The studio needs starlette"),
        ("uvicorn", "studio log.tsv", "The studio needs uvicorn"),
        ("cryptography", "keygen key", "A signature needs cryptography"),
        ("pyspark", "profile log.tsv --engine spark", "Spark needs pyspark"),
    ],
)
def test_a_missing_package_is_one_sentence_with_the_command_that_installs_it(home, module, words, sentence):
    before = sorted(home.iterdir())
    done = without([module], words.split(), home)
    extra = OPTIONAL[module].extra
    told = f"queryveil: {sentence}, which is not installed; get it with: pip install 'queryveil[{extra}]'.\n"
    assert (done.stderr, done.returncode) == (told, 2)
    assert sorted(home.iterdir()) == before


def test_attacks_without_their_packages_are_skipped_with_the_command(home):
    done = without(["phonenumbers", "sklearn"], ["attack", "release", "--original", "log.tsv", "--json"], home)
    assert done.returncode == 0, done.stderr
    for package, extra in (("phonenumbers", "scrub"), ("scikit-learn", "attack")):
        assert f"needs {package}, which is not installed; get it with: pip install 'queryveil[{extra}]'" in done.stdout


def test_kinds_that_need_no_package_are_scrubbed_without_it(home):
    words = "anonymize log.tsv --method equality -k 5 --scrub mask --scrub-kinds email,url -o scrubbed"
    assert without(["phonenumbers", "stdnum"], words.split(), home).returncode == 0


def test_what_is_installed_is_not_missing(monkeypatch):
    assert missing("altair", "jinja2") is None
    require("A report", "altair")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(QueryveilError, match=r"^A report needs jinja2, .* pip install 'queryveil\[report\]'\.$"):
        require("A report", "altair", "jinja2")
