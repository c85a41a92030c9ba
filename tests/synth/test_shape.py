"""The statistics of a log, within loose bounds that hold at a few thousand users."""

import statistics

import pytest

from queryveil.synth import calibrate


@pytest.fixture(scope="module")
def figures(made):
    return {figure.figure: figure for figure in calibrate(made.log)}


def test_lengths_of_events_are_near_aol(figures):
    for words in ("1 word", "2 words", "3 words", "4 words", "5+ words"):
        figure = figures[f"% of events with {words}"]
        assert figure.achieved == pytest.approx(figure.published, rel=0.15)


def test_nine_queries_in_ten_are_of_one_user(figures):
    assert 87 < figures["% of distinct queries issued by one user"].achieved < 97


def test_activity_has_a_heavy_tail(made):
    events = sorted(n for (n,) in made.sql("select count(distinct (query, time)) from log group by user"))
    assert 35 < statistics.mean(events) < 55
    assert 8 < statistics.median(events) < 22
    assert sum(events[-len(events) // 10 :]) > 0.4 * sum(events)


def test_clicks_are_as_frequent_as_in_aol(made):
    assert made.summary.clicks / made.summary.events == pytest.approx(0.673, rel=0.1)
    assert made.summary.rows / made.summary.events == pytest.approx(1.259, rel=0.05)


def test_first_results_are_clicked_most(made):
    counts = [n for (n,) in made.sql("select count(*) from log where rank between 1 and 5 group by rank order by rank")]
    assert counts == sorted(counts, reverse=True)


def test_times_span_three_months_with_a_daily_rhythm(made):
    assert made.sql("select min(time) >= '2006-03-01', max(time) < '2006-06-02' from log") == [(True, True)]
    night, evening = (
        made.sql(f"select count(*) from log where hour(time) between {hour} and {hour} + 3")[0][0] for hour in (2, 18)
    )
    assert evening > 3 * night


def test_navigational_queries_lead(made):
    top = [q for (q,) in made.sql("select query from log group by query order by count(distinct user) desc limit 5")]
    assert "google" in top


def test_users_return_to_own_queries(made):
    ((share,),) = made.sql(
        """
        select 1 - count(distinct (user, query)) / count(distinct (user, query, time)) from log
        """
    )
    assert 0.3 < share < 0.5


def test_users_have_a_few_topics(made):
    rows = made.sql(
        """
        select max(n) / sum(n) from (
            select user, topic, count(*) as n from log join truth using (query)
            where kind in ('base', 'refinement') group by user, topic
        ) group by user having sum(n) >= 50
        """
    )
    assert statistics.median(share for (share,) in rows) > 0.2
