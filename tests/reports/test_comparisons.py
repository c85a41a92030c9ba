import json
import re
from dataclasses import replace

from queryveil.assess.comparison import Configuration, Row, recommend
from queryveil.assess.policy import Policy
from queryveil.methods import METHODS
from queryveil.reports import comparison_page
from tests.reports.compared import evidence, made_up
from tests.reports.conftest import HOSTILE
from tests.reports.html import Page


def test_how_many_meet_the_policy_comes_first_and_then_what_is_recommended():
    comparison = made_up()
    comparison = replace(
        comparison, configurations=tuple(config for config in comparison.configurations if config.method != "zealous")
    )
    text = Page(comparison_page(comparison)).text
    done = sum(config.status == "done" for config in comparison.configurations)
    places = [text.index(f"{len(comparison.meeting)} of {done} releases meet the policy.")]
    places += [text.index(one.aim) for one in recommend(comparison)]
    assert places == sorted(places)
    assert places[-1] < text.index("What is kept, against what is given away")
    for one in recommend(comparison):
        assert one.reason in text.replace("\N{NO-BREAK SPACE}", " ")
        assert one.rule in text
    assert "none meets the policy" in text


def test_that_nothing_meets_the_policy_is_said_first():
    text = Page(comparison_page(replace(made_up(), policy=Policy(max_linkage=0)))).text
    assert "No release meets the policy." in text[: text.index("Each method was run")]
    assert "at most 0.0" in text


def test_the_measures_that_do_not_rank_are_named_with_the_reason():
    comparison = made_up()
    dull = Row(
        comparison.configurations[0].name,
        "utility",
        "task",
        "suggestion",
        "MRR",
        0.01,
        why="too low",
        separates=False,
    )
    text = Page(comparison_page(replace(comparison, rows=(*comparison.rows, dull)))).text
    assert "suggestion, MRR: too low" in text


def test_every_release_is_in_the_table_and_every_other_has_its_reason():
    comparison = made_up()
    text = Page(comparison_page(comparison)).text
    for config in comparison.configurations:
        assert config.name in text
        assert config.why in text


def test_every_chart_has_words_and_a_table():
    found = Page(comparison_page(made_up()))
    charts = [one for one in found.all("div") if "chart" in one.get("class", "").split()]
    assert len(charts) == 2
    assert all(len(chart["aria-label"].split()) > 8 for chart in charts)
    assert len(found.all("figcaption")) == 4


def fields(page, section):
    """The fields of a heat map as (release, number of the column, classes, note), and the heads of its columns."""
    part = page[page.index(f'<section id="{section}"') :]
    part = part[part.index('<table class="data heat') : part.index("</table>")]
    heads = re.findall(r'<th scope="col" class="number[^>]*><span>(.*?)</span>', part)
    lines = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', part)
    found = [(name, re.findall(r'<td class="(.*?)" title="(.*?)">', line)) for name, line in lines]
    return heads, {name: dict(zip(heads, some, strict=True)) for name, some in found}, part


def test_attacks_stand_under_their_questions_by_short_names():
    heads, _, part = fields(comparison_page(made_up()), "attacks")
    groups = re.findall(r'<th scope="colgroup" colspan="(\d+)" class="group">(.*?)</th>', part)
    assert groups == [("6", "singling out"), ("3", "linkability"), ("1", "inference")]
    assert heads[:3] == ["background, 1 random", "background, 3 random", "background, 5 random"]
    assert heads[6] == "history, random half"
    assert max(map(len, heads)) <= 24


def test_what_does_not_apply_is_hatched_with_its_reason():
    comparison = made_up()
    _, found, _ = fields(comparison_page(comparison), "attacks")
    kinds, note = found["equality, k = 2"]["record linkage"]
    assert "none" in kinds.split()
    assert "no user ids released" in note
    assert "none" in found["clump, k = 2"]["unique queries"][0].split()
    for row in comparison.rows:
        if row.measure == "history_linkage" and row.value is not None:
            kinds, note = found[row.configuration]["history, random half"]
            assert f"h{round(10 * row.value)}" in kinds.split()
            assert ("strong" in kinds.split()) == row.succeeds


def test_usefulness_is_a_share_of_what_the_log_has_and_says_which_direction_is_good():
    comparison = made_up()
    first = comparison.configurations[0].name
    rows = (
        Row(first, "utility", "task", "completion", "MRR", 0.2, best=0.5),
        Row(first, "utility", "distribution", "query_frequencies", "", 0.25, best=0.0, unit="number"),
    )
    page = comparison_page(replace(comparison, rows=(*comparison.rows, *rows)))
    heads, found, part = fields(page, "utility")
    assert {"↑ completion, MRR", "↓ distance of query frequencies", "↑ distinct queries"} <= set(heads)
    kinds, note = found[first]["↑ completion, MRR"]
    assert kinds == "h4"
    assert "20.0\N{NO-BREAK SPACE}%, which is 40.0\N{NO-BREAK SPACE}% of the log&#39;s 50.0" in note
    assert found[first]["↓ distance of query frequencies"][0] == "h8"  # a stronger colour is better
    assert ">40</td>" in part
    assert ">25</td>" in part


def test_methods_and_attacks_are_explained():
    text = Page(comparison_page(made_up())).text
    for method in ("equality", "zealous"):
        assert f"{method}: {METHODS[method].summary}" in text
    assert "Singling out: can one person be picked out?" in text
    assert "history: find the rest of a person's queries by half of their history" in text
    assert "Sybil: plant accounts until a secret query is released; a number of accounts" in text


def test_the_frontier_is_described_by_its_ends():
    comparison = made_up()
    least, most = comparison.frontiers[0].configurations[0], comparison.frontiers[0].configurations[-1]
    text = Page(comparison_page(comparison)).text
    assert re.search(rf"linked events goes from {re.escape(least)} \(.*to {re.escape(most)} \(", text)


def test_a_refuted_release_is_named_on_top():
    comparison = made_up()
    wrong = replace(comparison.configurations[3], holds=False)
    configs = (*comparison.configurations[:3], wrong, *comparison.configurations[4:])
    text = Page(comparison_page(replace(comparison, configurations=configs))).text
    assert f"The verifier refutes 1 of the releases: {wrong.name}." in text


def test_releases_with_the_same_queries_have_one_line_in_the_long_tail():
    comparison = made_up()
    first, twin = (config.name for config in comparison.configurations[:2])
    rows = [row for row in comparison.rows if row.configuration != twin or row.kind == "risk"]
    rows += [replace(row, configuration=twin) for row in rows if row.configuration == first and row.kind == "utility"]
    page = comparison_page(replace(comparison, rows=tuple(rows)))
    tail = page[page.index('id="bands"') : page.index('id="configurations"')]
    assert f">{first}<" in tail
    assert f">{twin}<" not in tail


def test_releases_that_differ_in_more_than_the_link_are_all_in_the_long_tail():
    """Two recipes, and two epsilons, that keep the same; none of them has a k."""
    comparison = made_up()
    settings = [("zealous", {"epsilon": e, "delta": 1e-6}) for e in (1.0, 10.0)] + [
        ("rules", {"max_digits": d}) for d in (1, 2)
    ]
    configs = [
        Configuration(f"configuration {i}", method, None, given, holds=True)
        for i, (method, given) in enumerate(settings)
    ]
    configs.append(Configuration("twin", "rules", None, {"max_digits": 2, "link": "user"}, holds=True))
    rows = [
        Row(config.name, "utility", "retention", "queries_kept_by_users", band.label, 0.5, best=1.0)
        for config in configs
        for band in comparison.bands
    ]
    page = comparison_page(replace(comparison, configurations=tuple(configs), rows=tuple(rows)))
    tail = page[page.index('id="bands"') : page.index('id="configurations"')]
    assert [f">{config.name}<" in tail for config in configs] == [True, True, True, True, False]


def test_where_nothing_is_kept_there_is_no_frontier_but_a_page():
    comparison = made_up()
    rows = (
        Row("hash", "utility", "retention", "queries_kept", "", 0.0, best=1.0),
        Row("hash", "risk", "linkability", "record_linkage", "", 0.4, 0.3, 0.5, baseline=0.1, succeeds=True),
    )
    hashed = Configuration("hash", "hash", None, {"link": "user"}, holds=True, linked=True)
    alone = replace(comparison, configurations=(replace(hashed, known=evidence(hashed, 0.4)),), rows=rows)
    assert any(frontier.points for frontier in alone.frontiers)
    text = Page(comparison_page(alone)).text
    assert "No release of linked events keeps anything of it, so that there is no frontier." in text


def layers(chart):
    """The parts of a chart: each with its values, and the encodings of its marks."""
    for part in chart["layer"]:
        data = [layer.get("data", part.get("data", {})) for layer in part["layer"]]
        values = [chart["datasets"][one["name"]] if "name" in one else one.get("values", []) for one in data if one]
        yield [value for some in values for value in some], [layer["encoding"] for layer in part["layer"]]


def charts(page):
    (text,) = [text for kind, text in Page(page).inside if kind == "script" and text.startswith('{"')]
    return json.loads(text)


def test_releases_without_linked_events_stand_in_a_strip_outside_the_axis():
    comparison = made_up()
    for i, frontier in enumerate(comparison.frontiers[:1]):
        (main, upper), (strip, lower) = layers(charts(comparison_page(comparison))[f"frontier-{i}"])
        linked = {config.name for config in comparison.configurations if config.linked}
        assert {value["name"] for value in main if "name" in value} == set(frontier.points) <= linked
        assert {value["name"] for value in strip if "name" in value} == set(frontier.apart)
        assert not set(frontier.apart) & linked
        (axis,) = {json.dumps(one["y"]["scale"]) for one in upper if one.get("y", {}).get("field") == "risk"}
        lanes = [one["y"] for one in lower if one.get("y", {}).get("field")]
        assert {one["field"] for one in lanes} == {"method"}  # no risk
        assert lanes[0]["scale"]["range"][0] > max(json.loads(axis)["range"])


def test_the_chart_has_a_line_a_method_with_its_ks_and_the_zone_of_the_policy():
    comparison = replace(made_up(), policy=Policy(max_linkage=0.2))
    (main, upper), _ = layers(charts(comparison_page(comparison))["frontier-0"])
    by = {value["name"]: value for value in main if "name" in value}
    assert by["equality, k = 5, link user"]["label"] == "5"
    assert by["equality, k = 5, link user"]["series"] == by["equality, k = 20, link user"]["series"]
    assert by["equality, k = 5, link user"]["series"] != by["equality, k = 5, link session"]["series"]
    assert [value for value in main if value.get("limit") == 0.2 and value["risk"] == 0]
    assert any(one.get("y2", {}).get("field") == "limit" for one in upper)
    for name, value in by.items():
        assert (value["fill"] != "var(--page)") == comparison.meets(name)


def test_a_comparison_without_linked_events_has_a_strip_alone():
    comparison = made_up()
    apart = tuple(config for config in comparison.configurations if not config.linked)
    page = comparison_page(replace(comparison, configurations=apart))
    assert len(list(layers(charts(page)["frontier-0"]))) == 1
    assert "there is no frontier" in Page(page).text


def test_attacks_that_succeed_are_shown_as_shares_of_those_tried():
    """Of one release only one attack was tried, and it succeeded; of the other two of three."""
    comparison = made_up()
    tried = [("one", [True]), ("other", [True, True, False])]
    rows = [
        Row(name, "risk", "linkability", "record_linkage", f"{i}", 0.4, 0.3, 0.5, baseline=0.1, succeeds=won)
        for name, every in tried
        for i, won in enumerate(every)
    ]
    configs = tuple(Configuration(name, "equality", 2, {"k": 2}, holds=True) for name, _ in tried)
    text = Page(comparison_page(replace(comparison, configurations=configs, rows=tuple(rows)))).text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "the smallest share succeeds on other (66.7 %), the largest on one (100.0 %)." in text
    text = Page(comparison_page(replace(comparison, configurations=configs[:1], rows=tuple(rows[:1])))).text
    assert "On every release, 100.0" in text


def test_accounts_are_not_drawn_as_shares():
    page = comparison_page(made_up())
    assert "sybil" not in json.dumps(charts(page))
    assert "20 accounts" in Page(page).text


def test_where_nothing_was_released_there_is_still_a_page():
    comparison = made_up()
    configs = tuple(replace(config, status="failed", why="It failed.") for config in comparison.configurations)
    text = Page(comparison_page(replace(comparison, configurations=configs, rows=()))).text
    assert "No release has both." in text
    assert "No attack could be tried." in text


def test_hostile_text_is_text_wherever_it_stands():
    found = Page(comparison_page(made_up(" ".join(HOSTILE))))
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {tag for tag, _ in found.elements} & {"img", "svg"}
    assert found.text.count("<script>alert(1)</script>") > 20


def test_the_same_can_be_made_again():
    assert "--policy" not in Page(comparison_page(made_up())).text
    assert "--policy POLICY" in Page(comparison_page(replace(made_up(), policy=Policy(min_k=9)))).text
    text = Page(comparison_page(made_up())).text
    methods = "equality,affinity,odp,search,mdav,clump,partition,wngen,poblete,zealous"
    assert f"queryveil compare LOG --methods {methods} -k 2,5,10,20,50 --epsilon 1,10 --seed 3 -o comparison" in text


def test_how_many_events_were_tried_is_shown_if_it_is_not_the_default():
    text = Page(comparison_page(replace(made_up(), tests=50))).text
    assert "--epsilon 1,10 --tests 50 --seed 3 -o comparison" in text
    assert "such as --format and --columns, are to be given as before" in text


def test_it_is_small_and_never_says_that_something_is_without_risk():
    page = comparison_page(made_up())
    assert len(page.encode()) < 1_500_000
    assert not re.search(r"\bsafe", Page(page).text, re.IGNORECASE)
