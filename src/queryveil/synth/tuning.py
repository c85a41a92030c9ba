"""Every number that was tuned to the published figures of the AOL log, in one place.

The figures are those of Carpineto and Romano (2015), tables 1 and 2, and the counts in the readme
that came with the log: 36.4 M rows, 28.9 M events (7.9 M of them ask for a next page), 19.4 M clicks on 12 M events.
"""

from typing import NamedTuple


class Law(NamedTuple):
    """A Zipf-Mandelbrot law over `n` ranks, or over all of a list if that is shorter."""

    n: int
    slope: float
    shift: float


class Tuning(NamedTuple):
    """How users behave. Shares are of events unless said otherwise."""

    # activity: events per user, log-normal
    activity_mean: float = 2.645  # of the logarithm
    activity_spread: float = 1.52
    activity_most: float = 6000.0

    # sessions
    session_start: float = 0.26  # chance that an event opens a session
    refind: float = 0.19  # an earlier own query again
    next_page: float = 0.33
    next_page_navigational: float = 0.13
    reformulate: float = 0.10  # add, drop or replace a word of the query before
    same_topic: float = 0.7  # a new query in a session stays with the session's topic
    stray: float = 0.15  # a topic outside the user's interests

    # length in words of a new query, cumulative from 1 word on
    length_1: float = 0.405
    length_2: float = 0.661
    length_3: float = 0.826
    length_4: float = 0.909
    length_more: float = 0.58  # chance of one more word from 5 on

    # new queries of one word
    known_site: float = 0.30
    topic_site: float = 0.48
    bare_site: float = 0.35  # share of sites written without their ending
    www: float = 0.40  # share of the others written with www.
    slip: float = 0.018  # of all new queries

    # names and personal data
    name: float = 0.05  # of new queries of two and three words
    name_with_place: float = 0.25  # of the names
    vanity: float = 0.006  # of all new queries
    personal: float = 0.0012  # of all new queries, each of phone, card, national id, address, e-mail

    # topical queries
    as_it_is: float = 0.5  # share of base queries among those of two and three words, the others are refined
    # refinements that many users make in the same words
    common: float = 0.34  # of those of three and four words
    common_long: float = 0.12  # of those of five words and more

    # what a refinement adds; the rest is a word of the topic
    add_phrase: float = 0.45
    add_place: float = 0.18
    add_model: float = 0.04
    add_link: float = 0.30  # a link word such as "in" where there is room for two words and more

    # clicks
    click: float = 0.40
    click_navigational: float = 0.45
    click_again: float = 0.50

    known_sites: Law = Law(30, 1.25, 1.0)
    topic_sites: Law = Law(1 << 30, 1.03, 8.0)
    item: float = 0.26  # share of topical queries that are, or refine, a listed item
    items: Law = Law(100, 0.7, 1.0)
    bases: Law = Law(1 << 28, 1.01, 70.0)  # ranks of the base queries of a topic
    refined: Law = Law(1 << 22, 1.08, 70.0)  # ranks of the base queries that get refined
    commons: Law = Law(1 << 20, 1.20, 4.0)  # ranks of the common refinements of a topic
    coined: Law = Law(1 << 20, 1.45, 65.0)  # ranks of the words of a topic that are in no list
    listed: float = 0.52  # share of listed words among the words of a topic
    listed_slope: float = 1.7  # of the Zipf law of listed words
    phrases: Law = Law(100, 0.9, 4.0)
    places: Law = Law(1 << 17, 1.2, 10.0)
    people: Law = Law(1 << 28, 1.10, 60.0)
    results: Law = Law(200, 1.3, 3.0)


AOL = Tuning()
