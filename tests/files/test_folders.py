import os
import stat

import pytest

from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.files import folders as files
from queryveil.files import scratch
from queryveil.files.folders import LocalFolder, check_file, write_whole
from queryveil.files.scratch import Scratch


def test_a_file_is_replaced_only_on_request_and_leaves_nothing_beside_it(tmp_path):
    place = tmp_path / "a.svg"
    write_whole(check_file(place, (".svg",), False), b"one")
    with pytest.raises(QueryveilError, match="exists already"):
        check_file(place, (".svg",), False)
    write_whole(check_file(place, (".svg",), True), b"two", overwrite=True)
    assert place.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(
    ("name", "sentence"), [("a.txt", r"must end with .svg or .png"), ("no/a.svg", "does not exist")]
)
def test_a_place_that_will_not_do_is_refused(tmp_path, name, sentence):
    with pytest.raises(QueryveilError, match=sentence):
        check_file(tmp_path / name, (".svg", ".png"), False)


def test_nothing_is_drawn_into_a_release(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(QueryveilError, match="is a release"):
        check_file(tmp_path / "a.svg", (".svg",), True)


def test_a_write_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "a.svg").mkdir()
    for place in (tmp_path / "a.svg", tmp_path / "no" / "b.svg"):
        with pytest.raises(QueryveilError, match=r"svg cannot be written: .*; name another place"):
            write_whole(place, b"x", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]


def test_a_private_file_is_for_its_owner_alone(tmp_path):
    write_whole(tmp_path / "a.svg", b"x", private=True)
    assert (tmp_path / "a.svg").stat().st_mode & 0o777 == 0o600


@pytest.fixture(params=["renameat2", "without renameat2"])
def system(request, monkeypatch):
    """A file system that renames with flags, and one that cannot."""
    if request.param == "without renameat2":
        monkeypatch.setattr(scratch, "_renameat2", lambda *given: False)


def made(place: LocalFolder, text: str) -> LocalFolder:
    """A staged folder that looks like a release."""
    stage = place.stage()
    stage.write("manifest.json", text.encode())
    (stage.path / "log.parquet").mkdir()
    (stage.path / "log.parquet" / "part-00000").write_text(text)
    return stage


def take(place: LocalFolder, text: str, replaces: tuple | None) -> None:
    stage = made(place, text)
    try:
        place.take(stage, replaces)
    finally:
        stage.remove()


def texts(folder) -> set[str]:
    return {path.read_text() for path in folder.rglob("*") if path.is_file()}


def comes_before_the_rename(monkeypatch, action) -> None:
    """Have somebody do something between the last look and the rename."""
    note = Scratch.note

    def noted(self, *given):
        note(self, *given)
        action()

    monkeypatch.setattr(Scratch, "note", noted)


@pytest.mark.usefixtures("system")
def test_a_file_that_came_after_the_check_stays(tmp_path):
    place = check_file(tmp_path / "a.svg", (".svg",), False)
    place.write_text("somebody's")
    with pytest.raises(QueryveilError, match=r"a\.svg exists already"):
        write_whole(place, b"ours")
    assert place.read_text() == "somebody's"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.usefixtures("system")
def test_a_link_that_leads_nowhere_is_no_free_place(tmp_path):
    for name in ("a.svg", "r"):
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(QueryveilError, match="exists already"):
        check_file(tmp_path / "a.svg", (".svg",), False)
    with pytest.raises(QueryveilError, match="exists already"):
        write_whole(tmp_path / "a.svg", b"ours")
    with pytest.raises(QueryveilError, match="made by somebody else"):
        take(LocalFolder(tmp_path / "r"), "ours", None)
    assert {path.name: path.is_symlink() for path in tmp_path.iterdir()} == {"a.svg": True, "r": True}


@pytest.mark.usefixtures("system")
def test_a_folder_takes_a_free_place_and_later_that_of_the_old_one(tmp_path):
    place = LocalFolder(tmp_path / "r")
    for text in ("one", "two"):
        take(place, text, place.state())
        assert texts(place.path) == {text}
        assert list(tmp_path.iterdir()) == [place.path]


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("content", [[], ["photo"]])
def test_a_folder_that_came_meanwhile_stays(tmp_path, content):
    place = LocalFolder(tmp_path / "r")
    place.path.mkdir()
    for name in content:
        (place.path / name).write_text(name)
    with pytest.raises(QueryveilError, match="made by somebody else in the meantime and is left unchanged"):
        take(place, "ours", None)
    assert place.files() == content
    assert list(tmp_path.iterdir()) == [place.path]


@pytest.mark.usefixtures("system")
def test_of_two_runs_that_would_replace_the_same_the_second_fails(tmp_path):
    place = LocalFolder(tmp_path / "r")
    take(place, "old", None)
    decided = place.state()
    take(place, "first", decided)
    with pytest.raises(QueryveilError, match="changed by somebody else in the meantime and is left unchanged"):
        take(place, "second", decided)
    assert texts(place.path) == {"first"}
    assert list(tmp_path.iterdir()) == [place.path]


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("change", ["another folder", "another file", "no manifest"])
def test_what_changed_right_before_the_rename_stays(tmp_path, monkeypatch, change):
    place = LocalFolder(tmp_path / "r")
    take(place, "old", None)

    def act() -> None:
        if change == "another folder":
            place.path.rename(tmp_path / "aside")
            place.path.mkdir()
        if change != "no manifest":
            (place.path / "photo").write_text("photo")
        else:
            (place.path / "manifest.json").unlink()

    comes_before_the_rename(monkeypatch, act)
    with pytest.raises(QueryveilError, match="changed by somebody else"):
        take(place, "ours", place.state())
    whole = ["log.parquet/part-00000", "manifest.json"]
    left = {"another folder": ["photo"], "another file": [*whole, "photo"], "no manifest": whole[:1]}
    assert place.files() == left[change]
    assert not list(tmp_path.glob(".queryveil-*"))


def test_what_cannot_be_put_back_is_kept_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_renameat2", lambda *given: False)
    place = LocalFolder(tmp_path / "r")
    take(place, "old", None)
    move = files.move_new

    def late(source, target):
        place.path.mkdir()
        (place.path / "photo").write_text("photo")
        move(source, target)

    monkeypatch.setattr(files, "move_new", late)
    with (
        pytest.warns(QueryveilWarning, match=r"holds what was at .*r while it was being replaced"),
        pytest.raises(QueryveilError, match="changed by somebody else"),
    ):
        take(place, "ours", place.state())
    assert place.files() == ["photo"]
    (kept,) = tmp_path.glob(".queryveil-*")
    assert texts(kept / "old") == {"old"}


def test_a_file_in_the_place_of_the_folder_stays(tmp_path, monkeypatch):
    place = LocalFolder(tmp_path / "r")
    take(place, "old", None)

    def act() -> None:
        place.path.rename(tmp_path / "aside")
        place.path.write_text("mine")

    comes_before_the_rename(monkeypatch, act)
    with pytest.raises(QueryveilError, match="changed by somebody else"):
        take(place, "ours", place.state())
    assert place.path.read_text() == "mine"


def test_staged_is_private_and_published_is_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        place = LocalFolder(tmp_path / "r")
        stage = made(place, "text")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (stage.path.parent, stage.path)}
        assert set(modes.values()) == {0o700}
        assert stat.S_IMODE((stage.path / "manifest.json").stat().st_mode) == 0o600
        place.take(stage, None)
        stage.remove()
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place.path, *place.path.rglob("*"))}
    finally:
        os.umask(before)
    assert found == {"r": 0o750, "manifest.json": 0o640, "log.parquet": 0o750, "part-00000": 0o640}
