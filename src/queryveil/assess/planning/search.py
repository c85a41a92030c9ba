"""The search for the release that keeps most and meets a policy.

What a release keeps is found first, which is cheap. Releases are then judged from the one that keeps most downwards:
the first that meets the policy wins, and whatever keeps less is never attacked. If a release misses a line of the
policy that falls with k, bisection finds the smallest k that does not, and smaller ones are left out.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from queryveil.assess.comparison import Configuration
from queryveil.assess.comparison.recommendations import HISTORIES, TAIL_OF, distance, history_label
from queryveil.assess.planning.selections import tail_kept
from queryveil.assess.planning.space import Aim, Family
from queryveil.assess.planning.trials import FALLING, Trials
from queryveil.assess.policy import Judgement
from queryveil.errors import Progress
from queryveil.log import LocalLog

HALF = 0.5
"""The share of the time after which what is left is halved."""


@dataclass
class Outcome:
    """What a search found.

    Attributes:
        scores: What each release keeps, by its name; one that keeps nothing is not there.
        ranked_by: What the scores are, in words.
        by_order: Whether the scores are only places in a fixed order.
        best: The releases that keep most of those that meet the policy; of several, all keep the same.
        unsure: Releases that were judged and that neither meet nor miss the policy.
        dropped: Releases that cannot meet the policy because a larger k does not: the line, and that release.
        ended: Whether time was up before the search was over.
    """

    scores: dict[str, float]
    ranked_by: str
    by_order: bool = False
    best: list[Configuration] = field(default_factory=list)
    unsure: list[Configuration] = field(default_factory=list)
    dropped: dict[str, tuple[str, str]] = field(default_factory=dict)
    ended: bool = False


class TimeUpError(Exception):
    """Time is up."""


class Search:
    """A search for one aim.

    Args:
        log: The log.
        aim: What the release is for.
        families: What is tried.
        trials: What is known of each release.
        budget: Seconds after which the best of what was found counts; None for no end.
        progress: Called with what is being done, and what is left.
    """

    def __init__(
        self,
        log: LocalLog,
        aim: Aim,
        families: Sequence[Family],
        trials: Trials,
        budget: float | None,
        progress: Progress | None,
    ) -> None:
        self._log, self._aim, self._trials = log, aim, trials
        self._families = [list(family.configurations) for family in families]
        self._budget, self._began = budget, time.monotonic()
        self._progress = progress or (lambda what: None)
        self._dropped: dict[str, tuple[str, str]] = {}

    def run(self) -> Outcome:
        """Search."""
        try:
            found = self._ranked()
        except TimeUpError:
            return Outcome({}, "", dropped=self._dropped, ended=True)
        found.dropped = self._dropped
        waiting = [one for one in self.ordered(found.scores) if one.name in found.scores]
        began, judged = time.monotonic(), 0
        while waiting := self._could_win(waiting, found):
            left = (time.monotonic() - began) / judged * len(waiting) if judged else None
            # If half of the time has passed without an end, halve what is left: the best of all may come too late.
            one = waiting.pop(len(waiting) // 2 if self._spent() > HALF else 0)
            self._say(one.name, len(waiting) + 1, left)
            try:
                outcome = self._judge(one)
            except TimeUpError:
                found.ended = True
                break
            judged += 1
            if outcome is not None and outcome.meets:
                equals = [best for best in found.best if found.scores[best.name] == found.scores[one.name]]
                found.best = [*equals, one]
            elif outcome is not None and outcome.meets is None:
                found.unsure.append(one)
        return found

    def _could_win(self, waiting: Sequence[Configuration], found: Outcome) -> list[Configuration]:
        """What keeps at least as much as the best by now, and is not known to miss the policy."""
        least = found.scores[found.best[0].name] if found.best else None
        left = (one for one in waiting if one.name not in self._dropped)
        return [one for one in left if least is None or found.scores[one.name] >= least]

    def ordered(self, scores: Mapping[str, float]) -> list[Configuration]:
        """All releases, from the one that keeps most."""
        every = [one for family in self._families for one in family]
        return sorted(every, key=lambda one: -scores.get(one.name, -math.inf))

    def _ranked(self) -> Outcome:
        """What each release keeps, before any is judged."""
        every = [one for family in self._families for one in family]
        if self._aim == "statistics":
            # What private releases hold must not decide between them, so their order does.
            return Outcome({one.name: float(-place) for place, one in enumerate(every, 1)}, "a fixed order", True)
        if self._aim == "long-tail":
            self._progress("what each release would keep")
            return Outcome({name: kept for name, kept in tail_kept(self._log, every).items() if kept}, TAIL_OF)
        for family in self._families:  # the largest k is the quickest to attack, and may rule out all others
            self._say(family[-1].name, len(every), None)
            for line in FALLING:
                if family[-1].name not in self._dropped and self._misses(family[-1], line):
                    self._dropped |= {one.name: (line, family[-1].name) for one in family}
        left = [one for one in every if one.name not in self._dropped]
        found = Outcome({}, "")
        for measure, detail in HISTORIES:
            found.ranked_by = history_label(measure, detail)
            for place, one in enumerate(left):
                self._say(f"what {one.name} keeps", len(left) - place, None)
                self._in_time()
                score = self._trials.score(one, measure, detail)
                if score:
                    found.scores[one.name] = score
            if found.scores:
                break
        return found

    def _judge(self, one: Configuration) -> Judgement | None:
        """Judge a release, and leave out those that a miss rules out as well."""
        self._in_time()
        judged = self._trials.judged(one)
        missed = [] if judged is None else [line.id for line in judged.missed if line.id in FALLING]
        for line in missed:
            self._bisect(one, line)
        return judged

    def _bisect(self, one: Configuration, line: str) -> None:
        """Find the smallest k of a family that does not miss a line of the policy, and leave out smaller ones."""
        family = next(family for family in self._families if one in family)
        low, high = family.index(one), len(family)
        while high - low > 1:
            # The largest first: often no k will do.
            middle = high - 1 if high == len(family) else (low + high) // 2
            low, high = (middle, high) if self._misses(family[middle], line) else (low, middle)
        for other in family[: low + 1]:
            self._dropped.setdefault(other.name, (line, family[low].name))

    def _misses(self, one: Configuration, line: str) -> bool:
        self._in_time()
        return self._trials.misses(one, line)

    def nearest(self, scores: Mapping[str, float]) -> tuple[Configuration, Judgement] | None:
        """The release that misses the fewest lines of the policy, of equals by the least, with every line of it."""
        every = [one for family in self._families for one in family]
        tried = [(one, judged) for one in every if (judged := self._trials.known(one)) is not None]
        if not tried:
            return None
        one, judged = min(tried, key=lambda found: (*distance(found[1].missed), -scores.get(found[0].name, 0.0)))
        return one, self._trials.in_full(one) or judged

    def _spent(self) -> float:
        """Which share of the time is over."""
        return 0.0 if self._budget is None else (time.monotonic() - self._began) / self._budget

    def _in_time(self) -> None:
        if self._spent() >= 1:
            raise TimeUpError

    def _say(self, what: str, left: int, seconds: float | None) -> None:
        about = "" if seconds is None else f", at most about {max(1, round(seconds / 60))} min"
        self._progress(f"{what}; at most {left:,} left{about}")
