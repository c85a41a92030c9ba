"""Record linkage: someone who has the whole log links every released record to the user it has most in common with."""

from queryveil.assess.attacks.finding import Finding, InapplicableError, anonymity_loss, share
from queryveil.assess.attacks.token_hashing import linked_by_words
from queryveil.assess.attacks.view import view
from queryveil.assess.measures.linkage import linkage_chances
from queryveil.claims import RecordUsers
from queryveil.log import QueryLog
from queryveil.release import Release
from queryveil.text.show import percent


def record_linkage(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """The mean probability that a released user is linked to their record (RL of Batet et al. 2013, as a share).

    Of hashed words, the attacker first reads the tokens that they can, and then compares words instead of queries.

    Args:
        release: A release with users that knows who is who.
        log: Its log.
        seed: Random seed, of the control.
    """
    seen = view(release, log)
    hashed = release.manifest.kind == "tokens"
    if hashed and seen.records:
        seen.need_owner()
        chances, permuted = linked_by_words(release, log, seed=seed)
    else:
        seen.owners()
        chances, permuted = linkage_chances(release), linkage_chances(release, seed)
    if not len(chances):
        raise InapplicableError("the release is empty")
    k = next((claim.users for claim in release.manifest.claims if isinstance(claim, RecordUsers)), None)
    return Finding(
        attack="record_linkage",
        setting="",
        number="records linked to their user, by one who has the log" + (" and reads tokens by it" if hashed else ""),
        unit="share",
        estimate=share(float(chances.sum()), len(chances)),
        baseline=1 / seen.log.n_users,
        baseline_text="one user of the log at random",
        control=share(float(permuted.sum()), len(permuted)),
        control_text="the same with records permuted among the users",
        trials=len(chances),
        beside="" if k is None else f"at most {percent(1 / k)}, because {k} users share every record",
        details={} if k is None else {"bound": 1 / k},
        loss=anonymity_loss(float(chances.mean()), 1.0, max(1 / seen.log.n_users, float(permuted.mean()))),
    )
