"""Attacks on a release, one file each, under the three questions asked of anonymised data.

Can a person be singled out? Can what belongs to one person be linked? Can something be inferred about a person?
"""

from queryveil.assess.attacks.attribution import attribution, attribution_to_one
from queryveil.assess.attacks.background_knowledge import background_knowledge
from queryveil.assess.attacks.differencing import differencing
from queryveil.assess.attacks.disambiguation import disambiguation
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError
from queryveil.assess.attacks.history_linkage import history_linkage, older_history
from queryveil.assess.attacks.personal_data import personal_data
from queryveil.assess.attacks.record_linkage import record_linkage
from queryveil.assess.attacks.registry import ATTACKS, Attack
from queryveil.assess.attacks.reidentification_risk import reidentification_risk
from queryveil.assess.attacks.run import Findings, Skipped, attack
from queryveil.assess.attacks.sybil import sybil
from queryveil.assess.attacks.token_hashing import Guesses, TokenAttack, token_frequency_attack, token_hashing
from queryveil.assess.attacks.uniqueness import unique_pairs, unique_queries
from queryveil.assess.attacks.user_linkage import user_linkage

__all__ = [
    "ATTACKS",
    "Attack",
    "Estimate",
    "Finding",
    "Findings",
    "Guesses",
    "InapplicableError",
    "Skipped",
    "TokenAttack",
    "attack",
    "attribution",
    "attribution_to_one",
    "background_knowledge",
    "differencing",
    "disambiguation",
    "history_linkage",
    "older_history",
    "personal_data",
    "record_linkage",
    "reidentification_risk",
    "sybil",
    "token_frequency_attack",
    "token_hashing",
    "unique_pairs",
    "unique_queries",
    "user_linkage",
]
