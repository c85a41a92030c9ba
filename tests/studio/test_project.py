"""A project is private, is of one log, and is found again."""

import json
import os

import pytest

from queryveil.errors import QueryveilError
from queryveil.methods.recipe import RecipeStep
from queryveil.studio.project import JOURNAL, STATE, Project, Reading
from queryveil.studio.session import Session
from queryveil.verification import Verification
from tests.studio.app import read


def test_what_is_chosen_is_found_again(tmp_path):
    project = Project(tmp_path / "p", ["log.tsv"], Reading(columns={"user": "u"}))
    project.state.steps = [RecipeStep(method="affinity", parameters={"k": 7})]
    project.save()
    project.note("lifted the mask", by="Ann", about="why")
    project.keep("verification.json", Verification(()), "abc")
    project.close()
    again = Project(tmp_path / "p", ["log.tsv"], Reading())
    assert again.state == project.state
    assert [(one.what, one.by, one.about) for one in again.journal] == [("lifted the mask", "Ann", "why")]
    assert again.kept("verification.json", Verification, "abc") == Verification(())
    assert again.kept("verification.json", Verification, "another release") is None
    assert again.kept("nothing.json", Verification, "abc") is None


def test_only_its_owner_can_read_it(tmp_path):
    project = Project(tmp_path / "p", ["log.tsv"], Reading())
    project.note("x")
    assert project.path.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in project.path.iterdir()} == {0o600}
    project.close()
    project.path.chmod(0o750)
    with pytest.raises(QueryveilError, match="chmod 700"):
        Project(tmp_path / "p", ["log.tsv"], Reading())


def test_it_is_of_one_log_and_open_once(tmp_path):
    project = Project(tmp_path / "p", ["log.tsv"], Reading())
    with pytest.raises(QueryveilError, match="open in another studio"):
        Project(tmp_path / "p", ["log.tsv"], Reading())
    project.close()
    with pytest.raises(QueryveilError, match="another log"):
        Project(tmp_path / "p", ["other.tsv"], Reading())


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "full").mkdir(0o700)
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(QueryveilError, match="other things"):
        Project(tmp_path / "full", ["log.tsv"], Reading())
    (tmp_path / "link").symlink_to(tmp_path / "full")
    with pytest.raises(QueryveilError, match="no folder of yours"):
        Project(tmp_path / "link", ["log.tsv"], Reading())
    with pytest.raises(QueryveilError, match="cannot be made"):
        Project(tmp_path / "no" / "p", ["log.tsv"], Reading())


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"logs": 1}', '{"logs": [], "release": -7}', '{"logs": [], "strange": 1}']
)
def test_a_damaged_project_is_refused(tmp_path, content):
    Project(tmp_path / "p", ["log.tsv"], Reading()).close()
    (tmp_path / "p" / STATE).write_text(content)
    with pytest.raises(QueryveilError, match=r"damaged|another log"):
        Project(tmp_path / "p", ["log.tsv"], Reading())


def test_a_file_that_is_none_is_not_read(tmp_path):
    Project(tmp_path / "p", ["log.tsv"], Reading()).close()
    (tmp_path / "p" / STATE).unlink()
    os.mkfifo(tmp_path / "p" / STATE)
    with pytest.raises(QueryveilError, match="neither a file nor a folder"):
        Project(tmp_path / "p", ["log.tsv"], Reading())


@pytest.mark.parametrize("name", ["runs", "runs/0001/release", "grid", "decisions.jsonl", "comparison"])
def test_a_project_with_links_is_refused_and_what_they_lead_to_stays(tmp_path, name):
    """What a kill left in `runs` is removed at the start: a link there would remove somebody's folder `2025`."""
    (tmp_path / "mine" / "2025").mkdir(parents=True)
    Project(tmp_path / "p", ["log.tsv"], Reading()).close()
    place = tmp_path / "p" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "mine")
    with pytest.raises(QueryveilError, match="neither a file nor a folder"):
        Session(["log.tsv"], Reading(), read, Project(tmp_path / "p", ["log.tsv"], Reading()))
    assert (tmp_path / "mine" / "2025").exists()


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path):
    project = Project(tmp_path / "p", ["log.tsv"], Reading())
    project.note("a")
    with (project.path / JOURNAL).open("a") as file:
        file.write('{"at": "2026-')
    assert [one.what for one in project.journal] == ["a"]
    project.note("b")
    project.note("c")
    assert [one.what for one in project.journal] == ["c", "b", "a"]


def test_the_mask_is_on_at_every_start(tmp_path):
    project = Project(tmp_path / "p", ["log.tsv"], Reading())
    project.state.masked = False
    project.save()
    project.close()
    again = Project(tmp_path / "p", ["log.tsv"], Reading())
    assert again.state.masked
    assert json.loads((tmp_path / "p" / STATE).read_text())["masked"]
    assert [(one.what, one.about) for one in again.journal] == [("masked texts again", "the studio was started")]
