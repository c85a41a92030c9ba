"""The release made again from its log: what only that sees."""

import pyarrow as pa
import pytest

import queryveil as qv
from tests.fuzz.forging import put_rows, table_of, tidy


def test_what_the_other_checks_let_pass_is_seen_when_the_release_is_made_again(tmp_path):
    """A query that was taken out, with all numbers mended, breaks no promise."""
    queries = ["tea", "coffee", "tea"]
    log = qv.read_log(pa.table({"user": [f"u{i}" for i in range(6) for _ in queries], "query": queries * 6}))
    qv.Equality(k=2).anonymize(log, seed=2**127).save(tmp_path / "r")
    _, table = table_of(tmp_path / "r")
    rows = [row for row in table.to_pylist() if row["query"] != "tea"]
    put_rows(tmp_path / "r", log, tidy(rows, table.column_names), table.schema)
    assert qv.verify(tmp_path / "r", log, rebuild=False).holds
    assert not qv.verify(tmp_path / "r", log).holds


@pytest.mark.parametrize("method", [qv.Odp, qv.Clump, qv.Wngen])
def test_another_taxonomy_of_the_same_name_that_was_opened_since_changes_nothing(small_world, tmp_path, method):
    mine, other = tmp_path / "mine" / "sites", tmp_path / "other" / "sites"
    words = sorted(set(" ".join(small_world.log.query_text.to_pylist()).split()))
    for place, named in ((mine, words), (other, words[::2])):
        table = tmp_path / "paths.tsv"
        table.write_text("".join(f"Top/{word[0]}/{word}\thttp://{i}.example.org/\n" for i, word in enumerate(named)))
        place.parent.mkdir()
        qv.build_directory([table], place)
    release = method(k=3, taxonomy=str(mine)).anonymize(small_world.log, seed=1)
    release.save(tmp_path / "r")
    qv.open_taxonomy(other)
    found = qv.verify(tmp_path / "r", small_world.log, certificate=release.certificate)
    assert found.holds, found
