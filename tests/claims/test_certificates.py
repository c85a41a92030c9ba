import stat

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims.certificates import save_certificate

ROWS = pa.table({"user": [f"u{i}" for i in range(7)], "query": ["cell phone case"] * 6 + ["cell phone case x1"]})


@pytest.fixture(scope="module")
def log():
    return qv.read_log(ROWS)


def test_a_certificate_is_written_privately_and_read_again(log, tmp_path):
    release = qv.Affinity(k=5, concept_min_users=5, min_term_users=1).anonymize(log, seed=7)
    release.save_certificate(tmp_path / "a.certificate")
    assert stat.S_IMODE((tmp_path / "a.certificate").stat().st_mode) == 0o600
    found = qv.load_certificate(tmp_path / "a.certificate")
    assert found.seed == 7
    assert found.tables == release.certificate.tables
    release.save(tmp_path / "r")
    verification = qv.verify(tmp_path / "r", log, certificate=found)
    assert verification.holds
    assert any("witnesses that the certificate names" in str(verdict.how) for verdict in verification.verdicts)


def test_a_certificate_is_written_over_nothing_and_into_no_release(log, tmp_path):
    release = qv.Equality(k=5).anonymize(log)
    release.save(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match="is a release, so nothing may be added"):
        release.save_certificate(tmp_path / "r" / "a.certificate")
    release.save_certificate(tmp_path / "a.certificate")
    with pytest.raises(qv.QueryveilError, match="exists already"):
        release.save_certificate(tmp_path / "a.certificate")
    release.save_certificate(tmp_path / "a.certificate", overwrite=True)
    with pytest.raises(qv.QueryveilError, match=r"must end with \.certificate"):
        release.save_certificate(tmp_path / "a.zip")
    with pytest.raises(qv.QueryveilError, match="Only a release that was just made has a certificate"):
        qv.Release.load(tmp_path / "r").save_certificate(tmp_path / "b.certificate")


@pytest.mark.parametrize("column", [["a"], [1.5], [None], pa.array([1], pa.uint64())])
def test_a_certificate_holds_whole_numbers_alone(column):
    with pytest.raises(qv.QueryveilError, match="signed whole numbers alone"):
        qv.Certificate(0, {"witnesses": pa.table({"query_id": column})})


@given(st.data())
def test_a_damaged_certificate_is_refused_in_one_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    one = qv.Certificate(3, {"witnesses": pa.table({"query_id": list(range(9)), "witness": list(range(9))})})
    save_certificate(one, folder / "a.certificate")
    content = bytearray((folder / "a.certificate").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        content = content[:place]
    (folder / "a.certificate").write_bytes(content)
    try:
        found = qv.load_certificate(folder / "a.certificate")
    except qv.QueryveilError as error:
        assert str(error).count("\n") == 0  # noqa: PT017
    else:  # a byte that says nothing, such as a date
        assert found.seed == one.seed
        assert found.tables == one.tables


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(qv.QueryveilError, match="cannot be read"):
        qv.load_certificate(tmp_path / "none.certificate")
    (tmp_path / "a.certificate").write_text("nothing")
    with pytest.raises(qv.QueryveilError, match="is damaged"):
        qv.load_certificate(tmp_path / "a.certificate")
