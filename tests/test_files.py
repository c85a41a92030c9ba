import pytest

from queryveil.errors import QueryveilError
from queryveil.files import check_file, write_whole


def test_a_file_is_replaced_only_if_told_and_leaves_nothing_beside_it(tmp_path):
    place = tmp_path / "a.svg"
    write_whole(check_file(place, (".svg",), False), b"one")
    with pytest.raises(QueryveilError, match="exists already"):
        check_file(place, (".svg",), False)
    write_whole(check_file(place, (".svg",), True), b"two")
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
            write_whole(place, b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]


def test_a_private_file_is_for_its_owner_alone(tmp_path):
    write_whole(tmp_path / "a.svg", b"x", private=True)
    assert (tmp_path / "a.svg").stat().st_mode & 0o777 == 0o600
