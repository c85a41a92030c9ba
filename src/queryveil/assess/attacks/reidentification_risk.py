"""Prosecutor, journalist and marketer risk: three ways to count who is re-identified."""

import numpy as np

from queryveil.assess.attacks.finding import Finding, InapplicableError, anonymity_loss, share
from queryveil.assess.attacks.view import view
from queryveil.log import QueryLog
from queryveil.release import Release
from queryveil.text.show import percent


def reidentification_risk(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """What an attacker gains who knows a person's record but for the name, by the number of people who share it.

    The marketer wants as many right names as possible: the mean of 1 / |group|, the headline. The prosecutor looks for
    one person who is known to be in the release: the largest 1 / |group|. The journalist looks for anybody, and cannot
    know who is in it: the largest 1 / |group| where all users of the log count who issued every query of the record.
    Nobody issued a text that is not in the log, such as a token or a masked query. Of a record with such a text only
    the group itself counts. Where a record is a session, groups are of sessions.

    Args:
        release: A release with pseudonyms.
        log: Its log.
        seed: Random seed, of the control.
    """
    seen = view(release, log)
    if not seen.records:
        raise InapplicableError("prosecutor, journalist and marketer risk are for releases with pseudonyms")
    people, kinds = int(seen.people.sum()), len(seen.class_size)
    kind = np.repeat(seen.kind, seen.people)
    permuted = np.random.default_rng(seed).permutation(kind)
    details: dict[str, float | int | str] = {"prosecutor": 1 / int(seen.class_size.min())}
    if seen.texts:
        some = np.unique(seen.kind, return_index=True)[1]
        bags = seen.bags.take(some)
        fitting = seen.issued.count(bags.start, bags.item)[0]
        fitting[seen.rest[some] != 0] = 0
        details["journalist"] = 1 / int(np.maximum(fitting, seen.class_size).min())
    beside = ", ".join(f"{name} {percent(float(risk))}" for name, risk in details.items())
    control = share(float(((permuted == kind) / seen.class_size[kind]).sum()), people)
    details |= {"groups": kinds, "alone": int((seen.class_size == 1).sum())}
    return Finding(
        attack="reidentification_risk",
        setting="",
        number="right names for records, if guessed inside groups of equal records",
        unit="share",
        estimate=share(kinds, people),
        baseline=1 / people,
        baseline_text="one session of the release at random"
        if seen.sessions
        else "one person of the release at random",
        control=control,
        control_text="the same with records permuted among people",
        trials=people,
        beside=f"{beside}, marketer {percent(kinds / people)}",
        details=details,
        loss=anonymity_loss(kinds / people, 1.0, max(1 / people, control.value)),
    )
