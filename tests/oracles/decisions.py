"""What decisions do to queries, read straight off their definition."""

from tests.oracles.text import normal_form, words


def texts(decisions, kind, of):
    """The texts that count: of several decisions about one, the last."""
    last = {(one.of, normal_form(one.text)): one.kind for one in decisions}
    return {text for (what, text), decided in last.items() if (decided, what) == (kind, of)}


def holds(query, phrase):
    """Whether a query has the words of a phrase in a row, or the phrase itself if that has no word."""
    parts, wanted = words(query), words(phrase)
    if not wanted:
        return phrase in query
    return any(parts[i : i + len(wanted)] == wanted for i in range(len(parts)))


def blocked(query, decisions):
    """Whether a query, or a word of it, is blocked."""
    return query in texts(decisions, "block", "query") or any(
        holds(query, phrase) for phrase in texts(decisions, "block", "word")
    )


def lifts(query, decisions, passes):
    """Whether a query need not pass a rule: it is allowed, or passes without all parts that are."""
    if query in texts(decisions, "allow", "query"):
        return True
    parts = query.split(" ")
    gone = set()
    for phrase in texts(decisions, "allow", "word"):
        size = len(phrase.split(" "))
        for at in range(len(parts) - size + 1):
            if parts[at : at + size] == phrase.split(" "):
                gone.update(range(at, at + size))
    return passes(" ".join(part for at, part in enumerate(parts) if at not in gone))
