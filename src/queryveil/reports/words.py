"""The words of reports: what a method does in plain language, and what the terms mean."""

from queryveil.claims import BagUsers, DifferentialPrivacy, RecordUsers
from queryveil.methods import STEPS
from queryveil.release.manifest import Manifest
from queryveil.text.show import isolated

GLOSSARY = {
    "attack": "A calculation that tries what an attacker would do and counts how often it succeeds.",
    "baseline": "How often the same is right at random, without the release.",
    "succeeds": (
        "The whole interval of an attack lies above its baseline, and above its control by more than chance explains."
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
    "L": "Information loss: the share of users who fall into another cluster by what is released of them.",
    "manifest": "A file in the release that says how it was made and what it promises.",
    "MRR": "Mean reciprocal rank: 1 if the right answer always comes first, 1/2 if always second, and so on.",
    "hit@10": "How often the right answer is among the first ten.",
    "NCP": "Normalized certainty penalty: how much of the precision of words is lost to more general ones.",
    "record": "All that is published under one number in the place of a user.",
    "release": "What is published: a table, its manifest and a short report.",
    "policy": "The limits that a release must keep to before it is published.",
    "singling out": "Picking one person out of all.",
    "SRP": "Profile retention: how much of each user's profile of topics is still in what is released of them.",
    "user": "An account of the log. A person may have several, and several people may share one.",
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
    method = " then ".join(step.method for step in manifest.steps)
    private = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if private is not None:
        return f"{method}, ε{gap}={gap}{private.epsilon:g}, δ{gap}={gap}{private.delta:g}"
    k = manifest.last.parameters.get("k")
    return method if k is None else f"{method}, k{gap}={gap}{k}"


_WHAT = {
    "events": "Search queries",
    "sessions": "Search sessions",
    "records": "Search histories",
    "items": "Topics of searches",
    "tokens": "Hashed search queries",
    "counts": "Table of search queries",
}
"""What is released, by its kind."""


def title(manifest: Manifest) -> str:
    """What the release is, in a line: the title that its publisher gave it, or what it holds."""
    if manifest.about is not None and manifest.about.title is not None:
        return isolated(manifest.about.title)
    shared = any(isinstance(claim, RecordUsers | BagUsers) for claim in manifest.claims)
    what = "Search histories of groups" if shared and manifest.kind == "records" else _WHAT[manifest.kind]
    return f"{what}, released by {named(manifest)}"


def lead(manifest: Manifest) -> list[str]:
    """What the release is, in plain sentences."""
    known = [(STEPS[step.method].plain, step.parameters.get("k")) for step in manifest.steps if step.method in STEPS]
    sentences = [plain.format(k=k) for plain, k in known]
    shared = any(isinstance(claim, RecordUsers | BagUsers) for claim in manifest.claims)
    if "session" in manifest.columns:
        sentences.append("Sessions appear under random numbers; all that stands under one number is one person's.")
    elif "user" not in manifest.columns:
        sentences.append("It does not show which searches were one person's.")
    elif not shared:
        sentences.append("Users appear under random numbers; all that stands under one number is one person's.")
    return sentences
