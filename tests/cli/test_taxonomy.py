import json
import re

import pytest

from queryveil.assess.reproduce import PAPERS, Figure, Paper, Published
from tests.knowledge import rdf
from tests.knowledge.test_directory import PATHS, SITES
from tests.knowledge.test_resolvers import engine, hits, results


@pytest.fixture
def dumps(tmp_path):
    (tmp_path / "structure.rdf.u8").write_text(rdf.structure(PATHS), "utf-8")
    (tmp_path / "content.rdf.u8").write_text(rdf.content(SITES), "utf-8")
    return tmp_path / "structure.rdf.u8", tmp_path / "content.rdf.u8"


@pytest.fixture
def clicked(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(
        "user\tquery\ttime\trank\turl\n"
        "a\tsong lyrics\t2006-03-01 10:00:00\t1\thttp://www.bands.example.com/\n"
        "b\tsong lyrics\t2006-03-01 10:00:00\t\t\n"
        "b\txyzzy\t2006-03-01 10:00:01\t\t\n"
    )
    return path


def test_from_a_dump_to_linked_queries(run, dumps, clicked, tmp_path):
    code, out, err = run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    assert (code, err) == (0, "")
    assert "categories" in out
    code, out, _ = run("categorize", clicked, "--taxonomy", tmp_path / "odp.qvd")
    assert code == 0
    assert "Arts > Music" in out
    code, out, _ = run("categorize", clicked, "--taxonomy", tmp_path / "odp.qvd", "--linker", "domains", "--json")
    found = json.loads(out)
    assert found["examples"] == [
        {
            "query": "song lyrics",
            "nodes": [{"item": "bands.example.com", "node": "Arts > Music > Bands", "confidence": 1.0}],
        },
        {"query": "xyzzy", "nodes": []},
    ]  # fmt: skip
    assert found["coverage"][0] == {
        "level": 0,
        "items": 1,
        "occurrences": 1,
        "queries": 0.5,
        "events": pytest.approx(2 / 3),
        "users": 1,
    }
    code, out, _ = run("taxonomy", "show", tmp_path / "odp.qvd", "www.bands.example.com")
    assert (code, out.splitlines()[0]) == (0, "Top > Arts > Music > Bands   (as site)")


def test_a_directory_as_json(run, dumps, tmp_path):
    code, out, _ = run("web-directory", "build", *dumps, "-o", tmp_path / "d", "--leave-out", "World", "--json")
    assert code == 0
    assert json.loads(out)["sites"] == 5
    code, _, err = run("web-directory", "build", *dumps, "-o", tmp_path / "d")
    assert code == 4
    assert "exists already" in err
    assert run("web-directory", "build", *dumps, "-o", tmp_path / "d", "--overwrite")[0] == 0


def test_wordnet_is_there_from_the_start(run, clicked):
    code, out, _ = run("categorize", clicked, "--linker", "phrases", "--examples", 1)
    assert code == 0
    assert "What wordnet covers of 2 distinct queries, by phrases" in out
    assert "song lyrics" in out
    assert "xyzzy" not in out


def test_show_the_path_and_the_neighbours(run):
    code, out, _ = run("taxonomy", "show", "wordnet", "Water Sports", "--neighbours", 2)
    assert code == 0
    path, below, beside = out.splitlines()
    assert path.endswith("diversion > sport > water sport   (as phrase)")
    assert below == "  below: swimming, surfing, and 1 more"
    assert beside.startswith("  beside: ")
    code, out, _ = run("taxonomy", "show", "wordnet", "dog", "--json")
    assert json.loads(out)["nodes"][0]["path"][0] == "entity"
    assert run("taxonomy", "show", "wordnet", "xyzzy")[0] == 1
    code, out, _ = run("taxonomy", "show", "wordnet", "xyzzy", "--json")
    assert (code, json.loads(out)["nodes"]) == (1, [])
    assert run("taxonomy", "show", "wordnet", "caf\udce9")[0] == 1


def test_links_by_meaning_say_how_sure_they_are(run, clicked):
    code, out, _ = run("categorize", clicked, "--linker", "embedding", "--examples", 1)
    assert code == 0
    assert re.search(r"\(0\.\d\d\)", out)


def test_queries_are_sent_only_to_a_server_that_is_named(run, dumps, clicked, tmp_path):
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    domains = ("link", clicked, "--taxonomy", tmp_path / "odp.qvd", "--linker", "domains")
    with engine(lambda query, asked: results("http://fcb.example.org/")) as (url, asked):
        run(*domains)
        assert asked == []
        code, out, _ = run(*domains, "--send-queries-to", url, "--cache", tmp_path / "a.db", "--rate", 100)
        assert code == 0
        assert "Sports > Soccer > UEFA > Spain" in out
        assert sorted(asked) == ["song lyrics", "xyzzy"]
    code, out, _ = run(*domains, "--resolver", "sites")
    assert "Arts > Music" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--linker", "magic"], "There is no linker 'magic'"),
        (["--taxonomy", "nowhere"], "There is no taxonomy 'nowhere'"),
        (["--linker", "domains"], "'wordnet' has no sites"),
        (["--resolver", "sites"], "are for --linker domains"),
        (["--cache", "c"], "--cache is for --send-queries-to"),
    ],
)
def test_wrong_usage_is_reported_before_the_log_is_read(run, words, sentence):
    code, out, err = run("categorize", "no such log", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--resolver", "magic"], "There is no resolver 'magic'"),
        (["--send-queries-to", "http://x"], "needs --cache FILE"),
        (["--send-queries-to", "x", "--cache", "c"], "is not the address of a search engine"),
        (["--resolver", "clicks", "--send-queries-to", "http://x"], "not both"),
    ],
)
def test_so_is_a_wrong_resolver(run, dumps, tmp_path, words, sentence):
    run("web-directory", "build", *dumps, "-o", tmp_path / "d")
    code, out, err = run("categorize", "no such log", "--taxonomy", tmp_path / "d", "--linker", "domains", *words)
    assert (code, out) == (2, "")
    assert sentence in err


def test_groups_of_users_from_the_command_line(run, dumps, tmp_path):
    log = tmp_path / "users.tsv"
    log.write_text(
        "user\tquery\turl\n" + "".join(f"u{i}\tsong lyrics {i % 3}\thttp://bands.example.com\n" for i in range(9))
    )
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    for method, more in (("odp", ["--categories", 5]), ("search", ["--compact"])):
        release = tmp_path / method
        code, out, err = run(
            "anonymize", log, "--method", method, "-k", 3, "--taxonomy", tmp_path / "odp.qvd", "-o", release, *more
        )
        assert (code, err) == (0, "")
        assert "3 groups of 3 users" in out
        assert run("verify", release, "--original", log)[0] == 0
        code, out, _ = run("explain", release, "--original", log, "song lyrics 1")
        assert code == 0
        assert "3 users issued it" in out


def test_reproduce_prints_tables_and_writes_charts(run, dumps, tmp_path):
    log = tmp_path / "users.tsv"
    log.write_text(
        "user\tquery\turl\n" + "".join(f"u{i}\tsong lyrics {i % 3}\thttp://bands.example.com\n" for i in range(9))
    )
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    words = ("reproduce", "erola2011", log, "--taxonomy", tmp_path / "odp.qvd")
    code, out, err = run(*words, "-o", tmp_path / "figures")
    assert (code, err) == (0, "")
    assert "Figure 3: Profile retention (SRP)" in out
    made = ("2", "3", "4", "4-partition", "4-queries")
    names = {"run.json", *(f"figure-{n}.{kind}" for n in made for kind in ("csv", "svg"))}
    assert {file.name for file in (tmp_path / "figures").iterdir()} == names
    assert (tmp_path / "figures" / "figure-3.csv").read_text().splitlines()[0] == "level,k,groups,SRP"
    code, _, err = run(*words, "-o", tmp_path / "figures")
    assert (code, "exists already" in err) == (4, True)
    code, out, _ = run("reproduce", "erola2012", log, "--taxonomy", tmp_path / "odp.qvd", "--json")
    assert json.loads(out)["figures"][0]["rows"][0]["level"] == 1
    code, _, err = run("reproduce", "nobody1999", "no such log")
    assert (code, "There is no paper 'nobody1999'" in err) == (2, True)


def test_labels_without_a_harmless_query_are_one_sentence(run, tmp_path):
    log, labels = tmp_path / "users.tsv", tmp_path / "labels.csv"
    log.write_text("user\tquery\n" + "".join(f"u{i}\tdog\n" for i in range(6)))
    labels.write_text("query,sensitive\ndog,yes\n")
    code, out, err = run("reproduce", "carpineto2015", log, "--sensitive", labels)
    assert (code, out) == (2, "")
    assert "No query of the log is labelled as harmless." in err


def test_what_is_about_one_user_is_shown_and_not_written(run, tmp_path):
    log = tmp_path / "users.tsv"
    rows = [(f"u{i}", query) for i in range(6) for query in ("cell phone", "red cell phone", f"dog {i}")]
    log.write_text("user\tquery\n" + "".join(f"{user}\t{query}\n" for user, query in rows))
    words = ("reproduce", "carpineto2015", log, "-k", "2,3", "--theta", "0.9")
    code, out, err = run(*words, "--user", "u3", "-o", tmp_path / "figures")
    assert (code, err) == (0, "")
    assert "Figure 5b: Released of the 3 distinct queries of one user" in out
    assert "red cell phone" in out
    assert "u3" not in out
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    assert "figure-5a.csv" in names
    assert not {"figure-5b.csv", "table-4.csv"} & names
    assert not any("u3" in file.read_text() for file in (tmp_path / "figures").iterdir())
    for more, why in (
        (("--user", "u9"), "The log has no user with this id"),
        (("--user", "u3", "--json"), "--user shows one person's queries on the terminal only; leave --json out."),
        (("--theta", "2"), "--theta must be a number"),
        (("-k", "1"), "-k takes whole numbers of at least 2"),
    ):
        code, _, err = run(*words[:3], *more)
        assert (code, why in err) == (2, True), err
        assert "u9" not in err
    code, _, err = run("reproduce", "erola2011", log, "--depth", "2")
    assert (code, "--depth is only for carpineto2015" in err) == (2, True)


@pytest.fixture
def nine(run, dumps, tmp_path):
    """A log of nine users, and how a paper is reproduced on it."""
    log = tmp_path / "users.tsv"
    log.write_text(
        "user\tquery\turl\n" + "".join(f"u{i}\tsong lyrics {i % 3}\thttp://bands.example.com\n" for i in range(9))
    )
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    return lambda paper, *words: run("reproduce", paper, log, "--taxonomy", tmp_path / "odp.qvd", *words)


def test_reproduce_asks_a_search_engine_that_is_named(nine, tmp_path):
    named = ("--cache", tmp_path / "a.db", "--rate", 100, "--timeout", 5, "--json")
    with engine(lambda query, asked: hits("http://fcb.example.org/")) as (url, asked):
        code, out, err = nine("erola2012", "--send-queries-to", f"{url}/pages/_search", *named)
        assert (code, err, len(asked)) == (0, "", 3)
    found = json.loads(out)
    assert [figure["name"] for figure in found["figures"]] == ["figure-2", "figure-3", "figure-3-similar"]
    assert found["published"][0]["value"].startswith("about 10 % more")
    code, _, err = nine("erola2012", "--resolver", "sites", "--json")
    assert (code, err) == (0, "")
    code, _, err = nine("erola2012", "--send-queries-to", "http://127.0.0.1:9")
    assert (code, "needs --cache FILE" in err) == (2, True)
    code, _, err = nine("erola2011", "--resolver", "sites")
    assert (code, "are only for erola2012" in err) == (2, True)


def test_reproduce_writes_one_page(nine, tmp_path):
    code, out, err = nine("erola2012", "--report", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert "What the text of the paper says, beside what was found here" in out
    assert "The report is" in out
    page = (tmp_path / "page.html").read_text()
    assert "about 10\N{NO-BREAK SPACE}% more" in page
    assert "queryveil reproduce erola2012 LOG --taxonomy TAXONOMY --seed 0 --report page.html" in page
    assert (tmp_path / "page.html").stat().st_mode & 0o77 == 0
    code, _, err = nine("erola2012", "--report", tmp_path / "page.html")
    assert (code, "exists already" in err) == (4, True)
    code, _, err = nine("erola2012", "--report", tmp_path / "page.txt")
    assert (code, "must end with .html" in err) == (2, True)


def test_reproduce_says_nothing_where_nothing_was_measured(run, tmp_path, monkeypatch):
    rows = ({"k": 2, "SRP": 0.5}, {"k": 3, "SRP": float("nan")})
    figure = Figure("figure-1", "Retention", rows, "k", "SRP")
    monkeypatch.setitem(PAPERS, "erola2011", Paper("erola2011", 2, lambda run: [figure]))
    log = tmp_path / "users.tsv"
    log.write_text("user\tquery\n" + "".join(f"u{i}\tdog\n" for i in range(9)))
    _, out, _ = run("reproduce", "erola2011", log, "--json")
    assert json.loads(out, parse_constant=pytest.fail)["figures"][0]["rows"][1] == {"k": 3, "SRP": None}
    code, out, _ = run("reproduce", "erola2011", log, "-o", tmp_path / "figures")
    assert code == 0
    assert "nan" not in out
    assert (tmp_path / "figures" / "figure-1.csv").read_text() == "k,SRP\n2,0.5\n3,\n"


def test_reproduce_prints_hostile_texts_as_texts(run, tmp_path, monkeypatch):
    """Names of lines and positions may be queries, or concepts of somebody's taxonomy."""
    hostile = "[/red]\x1b[31m\u202e"
    many = [{"k": k, "m": m, "x": 0.5} for k in range(8) for m in (hostile, "b")]
    named = [{"p": f"{hostile}{i}", "m": "b", "x": 0.5} for i in range(8)]
    table = [{"method": f"m{i}", "query": q, "degree": i} for q in (hostile, "tea") for i in range(8)]
    figures = [
        Figure("figure-1", hostile, many, "k", "x", "m"),
        Figure("figure-2", "positions", named, "p", "x", "m"),
        Figure("table-4", "Degrees", table, "method", "degree", "query", share=False, private=True),
    ]
    published = (Published("figure-1", "what", "yes", "section 1", lambda values: hostile),)
    monkeypatch.setitem(PAPERS, "erola2011", Paper("erola2011", 2, lambda run: figures, published=published))
    monkeypatch.setenv("COLUMNS", "250")
    log = tmp_path / "users.tsv"
    log.write_text("user\tquery\n" + "".join(f"u{i}\tdog\n" for i in range(9)))
    code, out, err = run("reproduce", "erola2011", log)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert out.count("[/red]") == 1 + 1 + 8 + 1 + 1
    lines = out.splitlines()
    assert any(line.split() == ["k", "3", "50.0", "%", "50.0", "%"] for line in lines)  # turned: a row per k
    assert any(line.split() == ["query", *(f"m{i}" for i in range(8))] for line in lines)  # a table never is
    assert any(line.split() == ["tea", *map(str, range(8))] for line in lines)


@pytest.mark.parametrize("verb", [("reproduce", "erola2012"), ("categorize",)])
@pytest.mark.parametrize("option", ["--cache", "--rate", "--timeout"])
def test_options_for_sending_queries_are_refused_where_none_is_sent(run, dumps, clicked, tmp_path, verb, option):
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    by = () if verb[0] == "reproduce" else ("--linker", "domains")
    for resolver in ((), ("--resolver", "sites")):
        words = (*verb, clicked, "--taxonomy", tmp_path / "odp.qvd", *by, *resolver)
        code, out, err = run(*words, option, "5")
        assert (code, out, f"{option} is for --send-queries-to; leave it out." in err) == (2, "", True), err


def test_how_often_categories_are_right(run, dumps, clicked, tmp_path):
    run("web-directory", "build", *dumps, "-o", tmp_path / "odp.qvd")
    (tmp_path / "truth.csv").write_text("query,topic\nsong lyrics,Top/Arts/Music\nxyzzy,Top/Sports\n")
    words = ("categorize", clicked, "--taxonomy", f"{tmp_path / 'odp.qvd'},wordnet", "--truth", tmp_path / "truth.csv")
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["accuracy"] == [
        {"level": 1, "of_categorized": 1, "of_all": 0.5},
        {"level": 2, "of_categorized": 1, "of_all": 1},
    ]
    code, out, _ = run(*words)
    assert "How often the first category of a query is its topic" in out
    (tmp_path / "truth.csv").write_text("query,category\nx,y\n")
    code, _, err = run(*words)
    assert (code, "have no column 'topic'" in err) == (2, True)
    code, _, err = run("reproduce", "erola2011", clicked, "--truth", tmp_path / "truth.csv")
    assert (code, "--truth is only for batet2013" in err) == (2, True)


def test_a_tree_without_addresses_from_the_command_line(run, tmp_path):
    (tmp_path / "t.tsv").write_text("Disorder/Varicella\tchicken pox\n")
    code, out, err = run("web-directory", "build", tmp_path / "t.tsv", "-o", tmp_path / "d")
    assert (code, err) == (0, "")
    assert "The taxonomy" in out
    assert "hosts" not in out
    assert "Disorder > Varicella" in run("taxonomy", "show", tmp_path / "d", "chicken pox")[1]
