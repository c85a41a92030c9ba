"""A signed release has the files that were signed, and no others."""

import os

import pytest

import queryveil as qv
from queryveil.assess.signing.files import MOST_BYTES, statement_beside
from tests.assess.signing.signed import holds


@pytest.mark.parametrize("name", ["manifest.json", "report.md", "log.parquet"])
def test_every_changed_byte_of_a_file_is_refused(copy, name):
    file = copy / "release" / name
    content = file.read_bytes()
    for at in range(0, len(content), max(len(content) // 100, 1)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert not holds(copy), at
    for other in (content[:-1], content + b"\n", b""):
        file.write_bytes(other)
        assert not holds(copy)
    file.write_bytes(content)
    assert holds(copy)


def _add(folder):
    (folder / "extra.txt").write_text("the log")


def _add_below(folder):
    (folder / "below").mkdir()
    (folder / "below" / "extra.txt").write_text("the log")


def _add_folder(folder):
    (folder / "u-1 asked for my secret").mkdir()


def _remove(folder):
    (folder / "report.md").unlink()


def _rename(folder):
    (folder / "report.md").rename(folder / "REPORT.md")


def _swap(folder):
    (folder / "report.md").rename(folder / "x")
    (folder / "manifest.json").rename(folder / "report.md")
    (folder / "x").rename(folder / "manifest.json")


def _link(folder):
    (folder / "report.md").rename(folder.parent / "report.md")
    (folder / "report.md").symlink_to("../report.md")


def _link_to_a_folder(folder):
    (folder / "more").symlink_to("..")


def _pipe(folder):
    (folder / "report.md").unlink()
    os.mkfifo(folder / "report.md")


def _device(folder):
    (folder / "report.md").unlink()
    (folder / "report.md").symlink_to("/dev/zero")


def _strange_name(folder):
    (folder / os.fsdecode(b"\xff\x1b[31m")).write_text("")


@pytest.mark.parametrize(
    "change",
    [
        _add,
        _add_below,
        _add_folder,
        _remove,
        _rename,
        _swap,
        _link,
        _link_to_a_folder,
        _pipe,
        _device,
        _strange_name,
    ],
    ids=lambda change: change.__name__,
)
def test_a_release_with_other_files_is_refused(copy, change):
    change(copy / "release")
    assert not holds(copy)


def test_the_statement_lies_beside_the_release_however_that_is_named(home, monkeypatch):
    monkeypatch.chdir(home / "release")
    assert qv.verify_signature(".", "../key.pub").holds
    monkeypatch.chdir(home)
    assert str(statement_beside("release/")) == "release.statement.json"


def test_a_statement_that_is_too_large_or_no_file_is_not_read(copy):
    with (copy / "large.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    os.mkfifo(copy / "pipe.json")
    for name, why in (
        ("large.json", "larger than 16 MiB"),
        ("pipe.json", "not a regular file"),
        ("no.json", "cannot be"),
    ):
        with pytest.raises(qv.QueryveilError, match=why):
            qv.verify_signature(copy / "release", copy / "key.pub", statement=copy / name)
