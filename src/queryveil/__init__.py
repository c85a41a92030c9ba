"""queryveil: a query log in, a verified release out.

import queryveil as qv

log = qv.read_log("log.tsv.gz")
release = qv.Equality(k=5).anonymize(log, seed=1)
release.save("release/")
qv.verify("release/", log).holds
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from queryveil.assess.attacks import attack
    from queryveil.assess.evaluation import evaluate
    from queryveil.assess.explanation import explain
    from queryveil.assess.neighbourhoods import neighbourhood
    from queryveil.assess.planning import plan
    from queryveil.assess.policy import Policy, judge_release, load_policy
    from queryveil.assess.profiles import profile
    from queryveil.assess.signing import new_key, sign, verify_signature
    from queryveil.assess.sweeps import sweep
    from queryveil.claims.certificates import Certificate, load_certificate
    from queryveil.engines.spark import Spark
    from queryveil.errors import QueryveilError
    from queryveil.knowledge import categorize, open_taxonomy
    from queryveil.knowledge.directory import build_directory
    from queryveil.log import QueryLog
    from queryveil.log.ingest import read_log
    from queryveil.methods import (
        Affinity,
        Clump,
        Columns,
        Counts,
        DpSet,
        Equality,
        Hash,
        Mdav,
        Odp,
        Partition,
        Pipeline,
        Poblete,
        Rules,
        Scrub,
        Search,
        Wngen,
        Zealous,
    )
    from queryveil.methods.rule_fragments import list_fragments
    from queryveil.release import Release
    from queryveil.release.about import About
    from queryveil.release.export import export
    from queryveil.reports import compare, report
    from queryveil.scrubbing import scrub
    from queryveil.series import Series
    from queryveil.synth import generate
    from queryveil.text.progress import show_progress
    from queryveil.verification import verify, verify_files

__all__ = [
    "About",
    "Affinity",
    "Certificate",
    "Clump",
    "Columns",
    "Counts",
    "DpSet",
    "Equality",
    "Hash",
    "Mdav",
    "Odp",
    "Partition",
    "Pipeline",
    "Poblete",
    "Policy",
    "QueryLog",
    "QueryveilError",
    "Release",
    "Rules",
    "Scrub",
    "Search",
    "Series",
    "Spark",
    "Wngen",
    "Zealous",
    "attack",
    "build_directory",
    "categorize",
    "compare",
    "evaluate",
    "explain",
    "export",
    "generate",
    "judge_release",
    "list_fragments",
    "load_certificate",
    "load_policy",
    "neighbourhood",
    "new_key",
    "open_taxonomy",
    "plan",
    "profile",
    "read_log",
    "report",
    "scrub",
    "show_progress",
    "sign",
    "sweep",
    "verify",
    "verify_files",
    "verify_signature",
]

_HOMES = {
    "About": "release.about",
    "Affinity": "methods",
    "Certificate": "claims.certificates",
    "Clump": "methods",
    "Columns": "methods",
    "Counts": "methods",
    "DpSet": "methods",
    "Equality": "methods",
    "Hash": "methods",
    "Mdav": "methods",
    "Odp": "methods",
    "Partition": "methods",
    "Pipeline": "methods",
    "Poblete": "methods",
    "Policy": "assess.policy",
    "QueryLog": "log",
    "QueryveilError": "errors",
    "Release": "release",
    "Rules": "methods",
    "Scrub": "methods",
    "Search": "methods",
    "Series": "series",
    "Spark": "engines.spark",
    "Wngen": "methods",
    "Zealous": "methods",
    "attack": "assess.attacks",
    "build_directory": "knowledge.directory",
    "categorize": "knowledge",
    "compare": "reports",
    "evaluate": "assess.evaluation",
    "explain": "assess.explanation",
    "export": "release.export",
    "generate": "synth",
    "judge_release": "assess.policy",
    "load_certificate": "claims.certificates",
    "load_policy": "assess.policy",
    "neighbourhood": "assess.neighbourhoods",
    "new_key": "assess.signing",
    "list_fragments": "methods.rule_fragments",
    "open_taxonomy": "knowledge",
    "plan": "assess.planning",
    "profile": "assess.profiles",
    "read_log": "log.ingest",
    "report": "reports",
    "scrub": "scrubbing",
    "show_progress": "text.progress",
    "sign": "assess.signing",
    "sweep": "assess.sweeps",
    "verify": "verification",
    "verify_files": "verification",
    "verify_signature": "assess.signing",
}


_RENAMED = {"link": "categorize", "open_knowledge": "open_taxonomy"}
"""Names of version 0.1."""


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    # Looked up when asked for, so that `queryveil --help` does not wait for NumPy and DuckDB.
    if name in _RENAMED:
        from queryveil.errors import renamed

        renamed(f"queryveil.{name}", f"queryveil.{_RENAMED[name]}")
        name = _RENAMED[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'queryveil' has no attribute '{name}'")
    return getattr(import_module(f"queryveil.{_HOMES[name]}"), name)
