"""The verb."""

import json
import subprocess
import sys

import typer
from typer.testing import CliRunner

from queryveil.cli.synth import synth

app = typer.Typer()
app.command()(synth)


def test_shows_achieved_against_published(tmp_path):
    result = CliRunner().invoke(app, ["--users", "150", "--seed", "1", "-o", str(tmp_path / "log.tsv.gz")])
    assert result.exit_code == 0
    assert "distinct queries / events" in result.stdout
    assert (tmp_path / "log.tsv.gz").exists()


def test_json_for_machines(tmp_path):
    arguments = ["--users", "150", "-o", str(tmp_path / "log.parquet"), "--truth", str(tmp_path / "truth"), "--json"]
    result = CliRunner().invoke(app, arguments)
    found = json.loads(result.stdout)
    assert found["users"] == 150
    assert {"figure", "published", "achieved"} == set(found["figures"][0])
    assert (tmp_path / "truth" / "queries.parquet").exists()


def test_importing_the_verb_is_light():
    check = "import sys, queryveil.cli.synth, queryveil.synth; print({'numba', 'duckdb', 'pyarrow'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
