"""Run what a policy asks for, and judge a release by it."""

from pathlib import Path

from queryveil.assess.attacks import attack
from queryveil.assess.policy.criteria import ATTACKS, judge
from queryveil.assess.policy.evidence import gather
from queryveil.assess.policy.judgement import Judgement
from queryveil.assess.policy.rules import Policy
from queryveil.errors import Progress, old_names
from queryveil.log import QueryLog
from queryveil.release import Release, loaded_release
from queryveil.verification.verifier import Verification, run_checks


@old_names(knowledge="taxonomy", read=None)
def judge_release(
    policy: Policy,
    release: str | Path | Release,
    log: QueryLog,
    *,
    taxonomy: str | None = None,
    verification: Verification | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Judgement:
    """Run the attacks that a policy asks for, on bounded samples, and judge a release by them.

    Args:
        policy: The policy.
        release: The release, or its folder; just made, or loaded with its user map.
        log: Its log.
        taxonomy: The folder of the web directory that the release was made with.
        verification: What the verifier found. Without it, a release that was just made is checked here, and whether
            one that was saved keeps its promises is unknown.
        seed: The random seed.
        progress: Called with the name of each attack as it begins.
    """
    release = loaded_release(release)
    found = attack(release, log, seed=seed, taxonomy=taxonomy, progress=progress, only=ATTACKS)
    if verification is None and release.folder is None:
        verification = run_checks(release, log)
    return judge(policy, gather(release, log, found, verification))
