"""Recipes and manifests of version 0.1 with the names of today, and what changed in meaning."""

from typing import Any

from queryveil.claims.limits import LIMITS

LINKED = ("equality", "affinity", "rules", "poblete", "wngen", "hash")
_PRIVATE = ("zealous", "dp-set")
_LINKS = {"fresh": "user", "drop": "none"}
_TREES = ("odp", "search", "mdav", "clump", "partition", "wngen")
_RENAMED = {
    "affinity": {"min_users": "concept_min_users"},
    **{name: {"which": "keep", "d": "max_queries_per_user"} for name in _PRIVATE},
    **{name: {"knowledge": "taxonomy"} for name in _TREES},
}

_DEFAULTS = {
    "link": (
        LINKED,
        "no 'link' is given: events are released without pseudonyms now, where 0.1 gave every user one (link = user)",
    ),
    "keep": (
        _PRIVATE,
        "no 'keep' is given: each user's most frequent queries count now, in 0.1 the first (keep = first)",
    ),
    "vectors": (
        ("affinity",),
        "no 'vectors' is given: rare words count now in comparisons, in 0.1 they did not (vectors = concepts)",
    ),
    "min_term_users": (
        ("affinity",),
        "no 'min_term_users' is given: every word needs k users now, in 0.1 it needed 2 (min_term_users = 2)",
    ),
}
"""Parameters with another default than in 0.1: the methods that have them, and what changes if none is given."""


def translated(method: str, parameters: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters by their names of today, and a sentence for each that was renamed."""
    found, changes = dict(parameters), []
    if method in LINKED and found.get("users") in _LINKS:
        old = found.pop("users")
        found.setdefault("link", _LINKS[old])
        changes.append(f"'users = {old}' is 'link = {_LINKS[old]}' now")
    for old, new in _RENAMED.get(method, {}).items():
        if old in found:
            found.setdefault(new, found.pop(old))
            changes.append(f"'{old}' is '{new}' now")
    return found, changes


def changed_defaults(method: str, parameters: dict[str, Any]) -> list[str]:
    """Sentences about the defaults that a recipe uses and that were different in 0.1."""
    return [what for name, (methods, what) in _DEFAULTS.items() if method in methods and name not in parameters]


def read_manifest(old: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The plain values of a manifest of format 1 as those of format 2, and what was renamed; the format stays 1.

    A release under pseudonyms of users did not claim explicitly that each stands for one user; it is checked anyway.
    What it does not promise is worded as today.
    """
    method = old.get("method", "")
    parameters, changes = translated(method, dict(old.get("parameters", {})))
    claims = [_claim(claim, parameters) for claim in old.get("claims", ())]
    if method == "affinity":
        least = next((claim.get("concept_min_users") for claim in claims if claim.get("kind") == "affine-users"), None)
        parameters |= {"vectors": "concepts", "concept_min_users": least, "similarity": ["words"], "unit": "query"}
        changes.append("queries were compared as with 'vectors = concepts'")
    if method == "rules":
        parameters |= {"min_fragment_users": None, "fragment_words": 2, "noun_phrases": False, "fragment_list": None}
    if method in LINKED and parameters.get("link") == "user" and method != "hash":
        whole = method != "rules" or parameters.get("min_row_users") is None
        claims.append({"kind": "linked-events", "whole": whole, "items": method == "wngen"})
    values = {name: value for name, value in old.items() if name not in ("seed", "notes")}
    known = {"parameters": parameters, "claims": claims, "limits": LIMITS.get(method, ()), "kind": _kind(old, method)}
    return values | known, changes


def _kind(old: dict[str, Any], method: str) -> str:
    """What is released, which 0.1 did not say explicitly."""
    columns = old.get("columns", ())
    if method == "hash" or method in _PRIVATE:
        return "tokens" if method == "hash" else "counts"
    return "items" if "node" in columns else "records" if "user" in columns else "events"


def _claim(claim: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    claim = {("taxonomy" if name == "knowledge" else name): value for name, value in claim.items()}
    if claim.get("kind") == "differential-privacy":
        steps = [
            {("pre_threshold" if name == "first" else name): value for name, value in step.items()}
            for step in claim.get("steps", ())
        ]
        return {"keep": parameters.get("keep", "first"), "ngrams": parameters.get("ngrams", 0), **claim, "steps": steps}
    if claim.get("kind") != "affine-users":
        return claim
    renamed = {("concept_min_users" if name == "min_users" else name): value for name, value in claim.items()}
    return renamed | {"vectors": "concepts"}
