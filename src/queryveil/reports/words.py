"""The words of reports: what a method does in plain language, and what the terms mean."""

from queryveil.claims import DifferentialPrivacy, RecordUsers
from queryveil.release.manifest import Manifest

PLAIN = {
    "equality": "It holds the queries that at least {k} people typed in the same words. Those of fewer are left out.",
    "rules": "It holds the queries that pass a list of rules, such as how many people typed them.",
    "affinity": (
        "It holds queries that at least {k} people stand behind: they typed the query itself, or released queries"
        " much like it. A query that one person alone typed may be among them."
    ),
    "odp": (
        "At least {k} people with similar interests share one record, which mixes queries of all of them. The queries"
        " are published as they were typed."
    ),
    "search": (
        "At least {k} people whose queries lead to similar web sites share one record, which mixes queries of all of"
        " them. The queries are published as they were typed."
    ),
    "mdav": (
        "At least {k} people whose queries mean alike share one record of queries that stand for all of them. The"
        " queries are published as they were typed."
    ),
    "clump": (
        "It holds no queries. Each group of at least {k} people has one list of general terms, which stand for nouns"
        " that they typed."
    ),
    "partition": (
        "It holds no queries. Each group of at least {k} people has one set of general terms, which stand for the"
        " nouns that they typed."
    ),
    "wngen": (
        "It holds no queries. In the place of each stands a more general concept that queries of at least {k} people"
        " have in common."
    ),
    "zealous": (
        "It holds frequent queries with counts that were blurred by random noise, so that whether one person is in the"
        " log or not changes little of what can be seen."
    ),
    "dp-set": (
        "It holds a set of queries that was drawn with random noise, so that whether one person is in the log or not"
        " changes little of what can be seen."
    ),
    "poblete": (
        "It holds queries that lead to many documents of many web sites. It protects web sites, and counts no people."
    ),
    "hash": (
        "A token stands for each word. This is not anonymous: who has a similar log can tell which word a frequent"
        " token stands for."
    ),
}
"""What a method publishes, for a reader who knows none of its papers."""

GROUPS = {
    "retention": "How much is kept",
    "distribution": "How frequent things are",
    "interests": "Interests of users",
    "task": "Tasks that learn from it",
}
"""Groups of measures."""

GLOSSARY = {
    "attack": "A calculation that tries what somebody with bad intentions would, and counts how often it works.",
    "baseline, guessing": "How often the same is right by lot, without looking at the release.",
    "beats guessing": (
        "The whole interval of an attack lies above guessing and above that of its control: more than chance explains."
    ),
    "control": "The same attack where there is nothing to find. What it finds is noise, not a leak.",
    "differential privacy": (
        "A promise about noise: what is published is almost as likely with any one person in the log as without."
        " Epsilon (ε) bounds how much more likely, delta (δ) how often the bound may fail; smaller is stronger."
    ),
    "distinct query": "A text that was typed, counted once however often it was.",
    "event": "One search: a person typed a query at some time.",
    "fingerprint": "A number made from the whole log, which shows that two people speak of the same one.",
    "frequency band": "Queries that about equally many people issued. Most queries are in the first, the long tail.",
    "inference": "Learning something about a person that was not known before.",
    "interval (95 %)": "The range that holds the true value 95 times in 100. Few trials give a wide one.",
    "k": "The least number of people who must stand behind what is published.",
    "linkability": "Bringing together what belongs to one person.",
    "manifest": "A file in the release that says how it was made and what it promises.",
    "MRR": "Mean reciprocal rank: 1 if the right answer always comes first, 1/2 if always second, and so on.",
    "hit@10": "How often the right answer is among the first ten.",
    "record": "All that is published under one number in the place of a user.",
    "release": "What is published: a table, its manifest and a short report.",
    "policy": "The lines that a release must keep to before it is published, each with a number.",
    "singling out": "Picking one person out of all.",
    "user": "An account of the log. One person may have several, and several people may share one.",
    "verifier": "A program that checks each promise against release and log, apart from the one that made them.",
}
"""Terms in plain words."""

COMPARED = {
    "frontier": (
        "The releases of linked events that no other exceeds: each that keeps more also gives more away, and each that"
        " gives less away keeps less."
    ),
}
"""Terms of comparisons."""


def named(manifest: Manifest) -> str:
    """A method with the number that matters most."""
    gap = "\N{NO-BREAK SPACE}"
    private = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if private is not None:
        return f"{manifest.method}, ε{gap}={gap}{private.epsilon:g}, δ{gap}={gap}{private.delta:g}"
    k = manifest.parameters.get("k")
    return manifest.method if k is None else f"{manifest.method}, k{gap}={gap}{k}"


def lead(manifest: Manifest) -> list[str]:
    """What the release is, in plain sentences."""
    sentences = [PLAIN[manifest.method].format(k=manifest.parameters.get("k"))] if manifest.method in PLAIN else []
    shared = any(isinstance(claim, RecordUsers) for claim in manifest.claims)
    if "session" in manifest.columns:
        sentences.append("Sessions appear under random numbers; all that stands under one number is one person's.")
    elif "user" not in manifest.columns:
        sentences.append("It does not tell which searches were one person's.")
    elif not shared and manifest.method not in ("clump", "partition"):
        sentences.append("Users appear under random numbers; all that stands under one number is one person's.")
    return sentences
