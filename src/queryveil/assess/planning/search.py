"""The search for the release that keeps most and meets a policy.

What a release keeps is found before it is attacked, and falls with k. Releases are judged from the one that keeps most
downwards:
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

NOTHING = 0.0
HALF = 0.5
"""The share of the time after which what is left is halved."""


@dataclass
class Outcome:
    """What a search found.

    Attributes:
        scores: What each release keeps, by its name, as far as that was measured.
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
        found = Outcome({}, "", dropped=self._dropped)
        waiting = [list(family) for family in self._families]
        began, judged = time.monotonic(), 0
        try:
            measured = self._rank(found)
            while waiting := self._could_win(waiting, found):
                family = max(waiting, key=lambda family: self._bound(family[0], found))
                # If half of the time has passed without an end, halve what is left: the best of all may come too late.
                one = family[len(family) // 2 if self._spent() > HALF else 0]
                left = sum(map(len, waiting))
                self._say(one.name, left, (time.monotonic() - began) / judged * left if judged else None)
                if measured is not None and one.name not in found.scores:
                    self._measure(one, *measured, found)
                    continue
                family.remove(one)
                judged += 1
                self._count(one, self._judge(one), found)
        except TimeUpError:
            found.ended = True
        return found

    def _rank(self, found: Outcome) -> tuple[str, str] | None:
        """Rank releases before any is judged; for some aims they are measured one by one, by what this returns."""
        every = [one for family in self._families for one in family]
        if self._aim == "statistics":
            # What private releases hold must not decide between them, so their order does.
            found.scores, found.ranked_by = (
                {one.name: float(-place) for place, one in enumerate(every, 1)},
                "a fixed order",
            )
            found.by_order = True
        elif self._aim == "long-tail":
            self._progress("what each release would keep")
            found.scores, found.ranked_by = tail_kept(self._log, every), TAIL_OF
        else:
            for measure, detail in HISTORIES:
                found.scores, found.ranked_by = {}, history_label(measure, detail)
                for family in self._families:
                    self._say(f"what {family[0].name} keeps", len(every), None)
                    self._measure(family[0], measure, detail, found)
                if any(found.scores.values()):
                    break
            return measure, detail
        return None

    def _measure(self, one: Configuration, measure: str, detail: str, found: Outcome) -> None:
        self._in_time()
        found.scores[one.name] = self._trials.score(one, measure, detail) or 0.0

    def _bound(self, one: Configuration, found: Outcome) -> float:
        """What a release keeps, or more: what the next smaller k keeps whose release was measured."""
        family = self._family(one)
        before = [found.scores[other.name] for other in family[: family.index(one) + 1] if other.name in found.scores]
        return before[-1] if before else math.inf

    def _could_win(self, waiting: Sequence[list[Configuration]], found: Outcome) -> list[list[Configuration]]:
        """What may keep at least as much as the best by now, and is not known to miss the policy or to keep nothing."""
        least = found.scores[found.best[0].name] if found.best else -math.inf
        left = [
            [one for one in family if one.name not in self._dropped and found.scores.get(one.name, 1.0) != NOTHING]
            for family in waiting
        ]
        return [family for family in left if family and self._bound(family[0], found) >= least]

    def _count(self, one: Configuration, judged: Judgement | None, found: Outcome) -> None:
        """Note what became of a release."""
        if judged is None or judged.meets is False:
            return
        if judged.meets is None:
            found.unsure.append(one)
            return
        score = found.scores[one.name]
        if not found.best or score >= found.scores[found.best[0].name]:
            found.best = [*(best for best in found.best if found.scores[best.name] == score), one]

    def ordered(self, scores: Mapping[str, float]) -> list[Configuration]:
        """All releases, from the one that keeps most."""
        every = [one for family in self._families for one in family]
        return sorted(every, key=lambda one: -scores.get(one.name, -math.inf))

    def _family(self, one: Configuration) -> list[Configuration]:
        return next(family for family in self._families if one in family)

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
        family = self._family(one)
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
