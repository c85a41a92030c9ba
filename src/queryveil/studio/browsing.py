"""The lists of released queries and of those held back: sorted once for each release, by a job."""

from queryveil.assess.browse import Browser
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog
from queryveil.release import Release
from queryveil.studio.jobs import Jobs, Update

_LABELS = {False: "Sorting all queries", True: "Looking for personal data in all queries"}
_AT_ONCE = 1.0
"""Seconds that a page waits for the job."""


class Browsing:
    """The lists of one release at a time.

    Args:
        jobs: Who sorts.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._made: dict[bool, tuple[Release, Browser]] = {}
        """By whether personal data was looked for."""

    def browser(self, release: Release, log: LocalLog, *, flagged: bool) -> Browser | None:
        """The lists of a release; None while a job makes them.

        Args:
            release: The release.
            log: Its log.
            flagged: Whether personal data must have been looked for.

        Raises:
            QueryveilError: If the release has no queries.
        """
        ready = self._ready(release, flagged)
        if ready is not None:
            return ready

        def work(update: Update) -> None:
            update("which takes a while")
            made = self._ready(release, not flagged) or Browser(release, log)
            made.prepare(flagged=flagged)
            self._made = dict.fromkeys((False, flagged), (release, made))

        job = self._jobs.start("scan" if flagged else "sort", _LABELS[flagged], work)
        if not self._jobs.ended(job, _AT_ONCE):
            return None
        if job.error:
            raise QueryveilError(job.error)
        return self._ready(release, flagged)

    def _ready(self, release: Release, flagged: bool) -> Browser | None:
        of, made = self._made.get(flagged, (None, None))
        return made if of is release else None
