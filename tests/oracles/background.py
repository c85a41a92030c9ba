"""Linkage by background knowledge, as literally as it is described: every record against every person, in lists."""

from collections import Counter, defaultdict
from math import log, sqrt


def measure(events, words, records, who):
    """What the better of the two attackers finds.

    Args:
        events: (draw, user, query) of every event of the sampled people.
        words: The words of a query.
        records: The queries of each record, with repetitions.
        who: The person behind each record.

    Returns:
        The share of records linked, the unknown texts, and the share of these learned.
    """
    people = sorted({user for _, user, _ in events})
    known = {}
    for person in people:
        mine = sorted((draw, query) for draw, user, query in events if user == person)
        known[person] = [query for _, query in mine[: (len(mine) + 1) // 2]]
    bags = {person: bag(known[person], words) for person in people}
    holders = Counter(item for person in people for item in bags[person])

    def weight(n, item):
        return (1 + log(n)) * log((1 + len(people)) / holders[item])

    def cosine(record, person):
        shared = sum(weight(record[i], i) * weight(bags[person][i], i) for i in record.keys() & bags[person].keys())
        return shared / sqrt(sum(weight(n, i) ** 2 for i, n in bags[person].items())) if shared else 0

    def rare(record, person):
        return sum(1 / holders[i] for i in record.keys() & bags[person].keys())

    return max((one(score, people, bags, known, words, records, who) for score in (cosine, rare)), key=lambda x: x[2])


def one(score, people, bags, known, words, records, who):
    credit = {}
    for r, queries in records.items():
        scores = {person: score(bag(queries, words), person) for person in people}
        best = max(scores.values())
        ties = [person for person in people if scores[person] >= best * (1 - 1e-9)]
        credit[r] = (who[r] in ties) / len(ties)
    learned = defaultdict(float)
    for r, queries in records.items():
        for query in set(queries) - set(known[who[r]]):
            learned[who[r], query] = max(learned[who[r], query], credit[r])
    return sum(credit.values()) / len(credit), len(learned), sum(learned.values()) / max(len(learned), 1)


def bag(queries, words):
    found = Counter()
    for query in queries:
        found["query", query] += 1
        for word in words(query):
            found["word", word] += 1
    return found
