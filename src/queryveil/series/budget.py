"""The odometer of a series: what all its releases together use of a privacy budget.

Every release of a series is (epsilon, delta)-differentially private for the whole log of a user, whatever the releases
before it were. Their composition is computed by Google's dp-accounting from the privacy loss distribution that is worst
for such mechanisms (Kairouz, Oh and Viswanath, The Composition Theorem for Differential Privacy, ICML 2015).
"""

from functools import lru_cache

from queryveil.claims import DifferentialPrivacy
from queryveil.errors import QueryveilError, option, require
from queryveil.log import Spent


def spent(claim: DifferentialPrivacy, releases: int, delta: float) -> Spent:
    """What a number of releases cost together.

    Args:
        claim: What each of them promises.
        releases: How many there are.
        delta: The delta that is allowed to all of them.

    Raises:
        QueryveilError: If dp-accounting is missing.
    """
    return Spent(epsilon=_composed(claim.epsilon, claim.delta, releases, delta), delta=delta)


@lru_cache(256)
def _composed(epsilon: float, delta: float, releases: int, allowed: float) -> float:
    require("A budget for a series of private releases", "dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    # The privacy losses of the worst mechanism are -epsilon, epsilon and infinity, so no rounding changes them.
    one = privacy_loss_distribution.from_privacy_parameters(
        DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=epsilon / 10
    )
    together = one if releases == 1 else one.self_compose(releases)
    # Adding up is also right, and better if there are few releases.
    added = releases * epsilon if releases * delta <= allowed else float("inf")
    return min(float(together.get_epsilon_for_delta(allowed)), added)


def check_budget(found: Spent, budget: float, number: int) -> None:
    """Refuse a release that the budget does not allow."""
    if found.epsilon > budget * (1 + 1e-12):
        raise QueryveilError(
            f"The privacy budget is spent: with release {number} the series would use epsilon {found.epsilon:.6g} of"
            f" {budget:g} (at delta {found.delta:g}); begin a new series of other people, or set a larger"
            f" {option('budget_epsilon')} for the next series."
        )
