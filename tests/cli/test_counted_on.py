"""Users counted on another log, lists of fragments and exports, from the command line."""


def test_users_are_counted_on_another_log(run, log, tmp_path):
    longer = tmp_path / "longer.csv"
    longer.write_text("user,query\n" + "".join(f"u{i},my secret\n" for i in range(3)))
    made = ("--method", "rules", "--min-fragment-users", "3", "-o", tmp_path / "r")
    code, out, _ = run("anonymize", log, *made, "--counted-on", longer)
    assert code == 0
    assert "Holds: Fragments of queries have at least 3 users of another log." in out
    code, _, err = run("verify", tmp_path / "r", "--original", log)
    assert (code, "give that log as well, with --counted-on" in err) == (2, True)
    assert run("verify", tmp_path / "r", "--original", log, "--counted-on", longer)[0] == 0
    code, out, _ = run("explain", tmp_path / "r", "tea", "--original", log, "--counted-on", longer)
    assert (code, "0 used 'tea', the rarest" in out) == (0, True)


def test_fragments_on_a_list_stay_allowed_and_a_release_is_exported(run, log, tmp_path):
    code, out, _ = run("fragments", log, "--min-users", "3", "--since", "2026-04-30", "-o", tmp_path / "list.tsv")
    assert (code, (tmp_path / "list.tsv").read_text()) == (0, "tea\t2026-04-30\n")
    assert "1 fragments that stay allowed" in out
    rule = ("--min-fragment-users", "2", "--fragment-list", tmp_path / "list.tsv")
    assert run("anonymize", log, "--method", "rules", *rule, "-o", tmp_path / "r")[0] == 0
    assert run("verify", tmp_path / "r", "--original", log)[0] == 2
    assert run("verify", tmp_path / "r", "--original", log, "--list", tmp_path / "list.tsv")[0] == 0
    assert run("export", tmp_path / "r", "--format", "csv", "-o", tmp_path / "e")[0] == 0
    assert (tmp_path / "e" / "data" / "part-0.csv").read_text().startswith('"event","query"\n')
    code, _, err = run("export", tmp_path / "r", "--partition-by", "country", "-o", tmp_path / "f")
    assert (code, "cannot be partitioned by 'country'" in err) == (2, True)
