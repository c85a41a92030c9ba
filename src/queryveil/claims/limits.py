"""What each method does not promise, in plain words: it is part of every manifest and report.

It is stated here, separate from the methods, so that the verifier can see that nothing was removed.
"""

from collections.abc import Sequence

_ACCOUNTS = "Accounts controlled by one person count as several users."

RECORDS = (
    "k-anonymity of users is not differential privacy: it says nothing about what an attacker who knows part of the log"
    " can learn.",
    "Every query of a record was typed by one of its users, and is published as it is, also if it names somebody.",
    "A record mixes the queries of its users; an attacker who splits it by topic may find the queries of one of them.",
    _ACCOUNTS,
)
"""For records that users share."""

ITEMS = (
    "k-anonymity is not differential privacy: it says nothing about what an attacker who knows part of the log can"
    " learn.",
    "Words that are not in the tree, the order of words, clicks and times are lost.",
    "Each noun counts in its first sense, so an item may stand for something that nobody meant.",
    _ACCOUNTS,
)
"""For items of a tree instead of words."""

_PRIVATE = (
    "Each further release from the same log, by this or any other method, spends more of the users' privacy: epsilons"
    " and deltas add up.",
    "A verifier checks the arithmetic, and refuses a table that the stated noise would make less than once in a million"
    " times. Noise that is missing, scaled or left out for a part shows in some hundred queries near the threshold or"
    " with counts. In a few queries, or where queries of a user are chosen at random, it hardly shows: that a table can"
    " have been made as stated does not prove that it was. `queryveil.assess.audits` tests the method itself.",
    "Accounts controlled by one person count as several users, and are protected apart.",
)

_LINKED = (
    "Nothing is promised about what stands under one pseudonym, if there are any (`link`): one session, or all events"
    " of one user, can be those of one person alone, and an attacker who knows part of their history finds the rest."
)

_LINKED_UNLESS = _LINKED.replace(
    "if there are any (`link`):", "if there are any (`link`), unless sessions are units (`unit`):"
).replace("the rest.", "the rest. Sessions as units are similar to those of others, and can still be unique.")

_DRAWN = (
    "The queries that protect a released one may be left out of the release, so a reader cannot count the users behind"
    " it; only who has the log can."
)

_OF_LINKS = (_LINKED, _LINKED_UNLESS)

LIMITS: dict[str, tuple[str, ...]] = {
    "columns": (
        "Users are counted for a click, and for a combination of metadata, by itself. A query together with its day or"
        " its metadata can still be that of one person.",
    ),
    "equality": (
        "k-anonymity of queries is not differential privacy: it says nothing about what an attacker who knows part of"
        " the log can learn.",
        _LINKED,
        _ACCOUNTS,
    ),
    "rules": (
        "Rules are filters, not a privacy model: each promise above holds, and nothing beyond them is promised. None "
        "of them is differential privacy.",
        "Only the thresholds on users protect a person; rules about length, digits or lists remove what is likely to be"
        " personal, and miss what does not look like it.",
        "Where users are counted for words or fragments, and not for the whole query, a released query can be that of"
        " one person alone: its parts are common, and together they may say who it is.",
        "Lists are not part of a release, and the verifier must be given them. Whether they list the right texts, and"
        " whether fragments that stay allowed ever had enough users, it cannot see.",
        _LINKED,
        _ACCOUNTS,
    ),
    "affinity": (
        "k-theta-affinity is not differential privacy, and it is weaker than k-anonymity of queries: a released query "
        "may have been issued by one user alone, protected by similar queries of others. A person who saw it typed "
        "finds it again.",
        "Each word of such a query has many users, but a combination of common words can still name one person.",
        "If queries are compared by meaning or clicks, those that protect a query may be about the same topic and not "
        "ask the same; names, numbers and small places are recognized by lists, which do not have all of them.",
        _LINKED_UNLESS,
        "Accounts controlled by one person count as several users, and can be planted to protect a query.",
    ),
    "odp": RECORDS,
    "search": RECORDS,
    "mdav": (
        "k-anonymity of users is not differential privacy: it says nothing about what an attacker who knows part of the"
        " log can learn.",
        "Every query of a record was typed by somebody, and is published as it is, also if it names somebody.",
        "With the distance semantic, the queries of a record may be those of users outside of the group, so counts of"
        " queries are not true counts. With the others, a record mixes the queries of its users; an attacker who splits"
        " it by topic may find the queries of one of them.",
        _ACCOUNTS,
    ),
    "clump": ITEMS,
    "partition": ITEMS,
    "wngen": (
        *ITEMS,
        _LINKED,
    ),
    "counts": (
        "Without noise there are only thresholds on users, which are not differential privacy: they say nothing about"
        " what an attacker who knows part of the log can learn. An attacker who knows all users of a row but one learns"
        " what that one adds to it.",
        "With noise, each further release from the same log spends more of the users' privacy: epsilons and deltas add"
        " up. A verifier checks the arithmetic, and refuses a table that the stated noise would make less than once in"
        " a million times; in a few rows, noise that is missing hardly shows.",
        "Each number is of several users, and one of them may be behind most of it.",
        "Two tables of the same log, with other columns, totals or thresholds, or of a log that grew, can be subtracted"
        " from each other; nothing is promised about the difference.",
        "A hidden row does not follow exactly from totals, but bounds of it do. Without secondary suppression it does"
        " follow where it is the only one below its total.",
        "Rounding changes a number by at most half of the base, and hides nothing larger.",
        _ACCOUNTS,
    ),
    "zealous": _PRIVATE,
    "dp-set": _PRIVATE,
    "poblete": (
        "It protects web sites, not users: a query that one person typed is released if that person clicked enough, and"
        " users are counted nowhere.",
        "Only the clicks of the log say what a query leads to. A search engine may give two of the released queries an"
        " answer in common.",
        "A site that a query describes without naming it is not noticed, nor are misspelt names.",
        _LINKED,
    ),
    "hash": (
        "THIS RELEASE IS NOT ANONYMOUS. A token stands for the same word everywhere. An attacker with a similar log can"
        " see which word it is from how often and next to which others it occurs.",
        "An attacker who knows some queries of a person finds their other queries, and learns the tokens of all their"
        " words.",
        "An attacker with the key, or who can get words hashed with it, reads everything. Without the key nobody can"
        " check that a token stands for one word; the check compares how often, and next to which others, tokens and"
        " words occur.",
        "Rare queries stay: a token of one user is that of a word which one user typed.",
    ),
}
"""By the name of the method."""


def limits_of(steps: Sequence[str], *, drawn: bool = False) -> tuple[str, ...]:
    """What methods one after the other do not promise, each said once.

    Args:
        steps: Their names.
        drawn: Whether a later step released only some of the queries that protect each other.
    """
    *first, last = steps
    found = [limit for step in first for limit in LIMITS.get(step, ()) if limit not in _OF_LINKS]  # only the last links
    found += [*LIMITS.get(last, ()), *([_DRAWN] if drawn else [])]
    planted = any(limit.startswith(_ACCOUNTS.rstrip(".") + ",") for limit in found)
    return tuple(dict.fromkeys(limit for limit in found if limit != _ACCOUNTS or not planted))
