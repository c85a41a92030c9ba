"""Recipes and releases of version 0.1 are read, and what changed is said."""

import hashlib
import json
import warnings

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilWarning
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.release.earlier import changed_defaults, translated

LOG = pa.table(
    {
        "user": [f"u{i % 8}" for i in range(64)],
        "query": [["tea", "red tea", "mug", "red mug"][(i + i // 8) % 4] for i in range(64)],
        "time": [f"2006-03-{1 + i % 28:02} 10:00:00" for i in range(64)],
    }
)


def as_before(folder, *, users="fresh", **changed):
    """Rewrite a release that was just saved as 0.1 would have written it."""
    report = folder / "report.md"
    report.write_text("# Release report\n\nIn the words of 0.1.\n")
    (folder / "schema.json").unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    parameters = {
        name: value
        for name, value in manifest["parameters"].items()
        if name not in ("link", "session_gap", "session_events", "vectors", "concept_min_users")
        if name not in ("min_fragment_users", "fragment_words", "noun_phrases", "fragment_list")
    }
    manifest |= {"format_version": 1, "software": "queryveil 0.1.0", "parameters": parameters | {"users": users}}
    manifest["claims"] = [claim for claim in manifest["claims"] if claim["kind"] != "linked-events"]
    manifest["limits"] = ["Limits in the words of 0.1."]
    manifest["files"]["report.md"] = hashlib.sha256(report.read_bytes()).hexdigest()
    del manifest["files"]["schema.json"], manifest["counted_on"]
    del manifest["linkage"], manifest["counts"]["sessions"], manifest["input_counts"]["sessions"]
    manifest |= changed
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return manifest


OPEN = "The release can be checked in full."


def refuted(verification):
    """What is wrong with a release of 0.1: in any case, that less of it can be checked."""
    return [verdict.claim for verdict in verification.verdicts if not verdict.holds]


def test_a_release_of_0_1_is_read_and_held_to_its_promises(tmp_path):
    log = qv.read_log(LOG)
    qv.Equality(k=3, link="user").anonymize(log, seed=1).save(tmp_path / "r")
    as_before(tmp_path / "r")
    with pytest.warns(QueryveilWarning, match=r"made by version 0\.1.*'users = fresh' is 'link = user' now"):
        release = qv.Release.load(tmp_path / "r")
    assert release.manifest.format_version == 1
    assert release.manifest.parameters == {"k": 3, "link": "user"}
    verification = qv.verify(tmp_path / "r", log)
    assert refuted(verification) == [OPEN]
    assert any("under one pseudonym" in verdict.claim for verdict in verification.verdicts)
    assert qv.explain(tmp_path / "r", log, "tea").released


def test_the_concepts_of_an_affinity_release_of_0_1_are_those_of_its_claim(tmp_path):
    log = qv.read_log(LOG)
    method = qv.Affinity(k=3, vectors="concepts", concept_min_users=4, min_term_users=2)
    method.anonymize(log, seed=1).save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    for claim in manifest["claims"]:
        if claim["kind"] == "affine-users":
            claim["min_users"] = claim.pop("concept_min_users")
            del claim["vectors"]
    before = as_before(tmp_path / "r", users="drop", claims=manifest["claims"])
    before["parameters"]["min_users"] = None
    for later in ("similarity", "theta_meaning", "theta_clicks", "unit"):
        del before["parameters"][later]
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(before))
    with pytest.warns(QueryveilWarning, match="compared as with 'vectors = concepts'"):
        release = qv.Release.load(tmp_path / "r")
    assert release.manifest.parameters["concept_min_users"] == 4
    assert refuted(qv.verify(tmp_path / "r", log)) == [OPEN]


def test_a_release_of_0_1_with_mixed_up_users_is_refuted(tmp_path):
    import pyarrow.parquet as pq

    log = qv.read_log(LOG)
    qv.Equality(k=3, link="user").anonymize(log, seed=1).save(tmp_path / "r")
    table = pq.read_table(tmp_path / "r" / "log.parquet")
    users = table["user"].to_pylist()
    mixed = table.set_column(0, table.schema.field(0), pa.array([*users[1:], users[0]], pa.int64()))
    pq.write_table(mixed, tmp_path / "r" / "log.parquet")
    manifest = as_before(tmp_path / "r")
    digest = hashlib.sha256((tmp_path / "r" / "log.parquet").read_bytes()).hexdigest()
    files = manifest["files"] | {"log.parquet": digest}
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(manifest | {"files": files}))
    assert len(refuted(qv.verify(tmp_path / "r", log))) > 1


@pytest.mark.parametrize("how", ["remove", "mask"])
def test_a_scrubbed_release_of_0_1_is_checked_if_that_is_possible(tmp_path, how):
    more = pa.table({"user": ["a", "b"], "query": ["x@y.org"] * 2, "time": pa.nulls(2, pa.string())})
    log = qv.read_log(pa.concat_tables([LOG, more]))
    qv.Equality(k=3).anonymize(qv.scrub(log, how), seed=1).save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    del manifest["scrub"]["left_out"], manifest["scrub"]["log"]
    as_before(tmp_path / "r", users="drop", scrub=manifest["scrub"])
    if how == "mask":
        with pytest.raises(qv.QueryveilError, match=r"use queryveil 0\.1"):
            qv.verify(tmp_path / "r", log)
    else:
        assert refuted(qv.verify(tmp_path / "r", log)) == [OPEN]


@pytest.mark.parametrize("damage", [{"claims": "all"}, {"claims": ["x"]}, {"parameters": [1]}, {"parameters": None}])
def test_a_damaged_manifest_of_0_1_is_one_sentence(tmp_path, damage):
    log = qv.read_log(LOG)
    qv.Equality(k=3, link="user").anonymize(log, seed=1).save(tmp_path / "r")
    as_before(tmp_path / "r", **damage)
    with pytest.raises(qv.QueryveilError, match="damaged"):
        qv.Release.load(tmp_path / "r")


def test_old_names_are_translated():
    assert translated("rules", {"users": "drop", "max_terms": 3})[0] == {"link": "none", "max_terms": 3}
    assert translated("affinity", {"min_users": 9})[0] == {"concept_min_users": 9}
    assert translated("zealous", {"which": "first"}) == ({"keep": "first"}, ["'which' is 'keep' now"])
    # 'users' and 'min_users' mean something else, or nothing, in other methods.
    assert translated("zealous", {"min_users": 2})[0] == {"min_users": 2}


def test_every_parameter_that_is_named_here_is_one_of_its_method():
    for method in METHODS.values():
        for change in changed_defaults(method.name, {}):
            assert change.split("'")[1] in method.model_fields


def test_a_recipe_of_0_1_is_read_and_what_changed_is_said(tmp_path):
    (tmp_path / "old.toml").write_text('method = "affinity"\n[parameters]\nk = 4\nusers = "fresh"\nmin_users = 6\n')
    with pytest.warns(QueryveilWarning, match=r"'users = fresh' is 'link = user' now.*no 'vectors' is given"):
        recipe = load_recipe(str(tmp_path / "old.toml"))
    assert recipe.parameters == {"k": 4, "link": "user", "concept_min_users": 6}
    qv.Affinity(**recipe.parameters)


def test_shipped_recipes_say_everything():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in shipped():
            load_recipe(name)
