"""Attacks on a release, one file each, under the three questions asked of anonymised data.

Can a person be singled out? Can what belongs to one person be linked? Can something be inferred about a person?
"""

from queryveil.assess.attacks.attribution import attribution, attribution_to_one
from queryveil.assess.attacks.differencing import differencing
from queryveil.assess.attacks.disambiguation import disambiguation
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError
from queryveil.assess.attacks.groups import classic_risks
from queryveil.assess.attacks.hashing import Guesses, TokenAttack, token_frequency_attack, token_hashing
from queryveil.assess.attacks.history import history_linkage, older_history
from queryveil.assess.attacks.known import known_queries
from queryveil.assess.attacks.linkage import record_linkage
from queryveil.assess.attacks.personal import personal_data
from queryveil.assess.attacks.planting import planting
from queryveil.assess.attacks.run import Findings, Skipped, attack
from queryveil.assess.attacks.same_user import same_user
from queryveil.assess.attacks.uniqueness import unique_pairs, unique_queries

__all__ = [
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
    "classic_risks",
    "differencing",
    "disambiguation",
    "history_linkage",
    "known_queries",
    "older_history",
    "personal_data",
    "planting",
    "record_linkage",
    "same_user",
    "token_frequency_attack",
    "token_hashing",
    "unique_pairs",
    "unique_queries",
]
