"""What an app works on: the log, what is chosen, the release, and what was found about it; long work as jobs."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from queryveil.assess.attacks import attack
from queryveil.assess.browse import Browser
from queryveil.assess.comparison import Comparison
from queryveil.assess.evaluation import Evaluation, evaluate
from queryveil.assess.grid import Grid
from queryveil.assess.grid_making import grid
from queryveil.assess.policy import DEFAULT, Judgement, gather, judge, load_policy
from queryveil.assess.profiles import Profile, profile
from queryveil.assess.signing import statement_beside
from queryveil.claims.certificates import load_certificate
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog
from queryveil.methods import Affinity, Method
from queryveil.methods.recipe import RecipeStep
from queryveil.release import MANIFEST, Release
from queryveil.reports import compare
from queryveil.scrubbing.decisions import Decision
from queryveil.studio.browsing import Browsing
from queryveil.studio.decided import DecisionList, decisions_in, mark
from queryveil.studio.hits import Hits, hits_of
from queryveil.studio.jobs import Job, Jobs, Update
from queryveil.studio.making import RELEASE, make_run, remove_unfinished
from queryveil.studio.project import DECISIONS, Project, Reading, State
from queryveil.studio.results import (
    Audit,
    Found,
    compared,
    count_sessions,
    kept_findings,
    kept_grid,
    private_write,
)
from queryveil.studio.settings import beside_sliders, check_kept, decided_steps, method_of, slid
from queryveil.text.show import json_text
from queryveil.verification import Verification, verify

Reader = Callable[[list[str], Reading, Update], LocalLog]
GRID, RUNS, COMPARED, COMPARISON = "grid", "runs", "comparison", "comparison.json"


class Session:
    """The state of one app. Any number of requests read it; jobs change it, one at a time.

    Args:
        logs: The paths of the log.
        reading: How its files are read.
        reader: Reads a log: its paths, how, and what to call with the number of rows.
        project: The project; None for an audit without one.
        audit: The release to look at; None for one that is made here.
        policy: The file of what a release must meet, or the name of the policy that comes with queryveil.
    """

    def __init__(
        self,
        logs: Sequence[str],
        reading: Reading,
        reader: Reader,
        project: Project | None = None,
        audit: Audit | None = None,
        policy: str = DEFAULT,
    ) -> None:
        self._reader = reader
        self.project = project
        self.audit = audit
        self.policy_file = policy
        self.policy = load_policy(policy)
        self.jobs = Jobs()
        self.lock = threading.RLock()
        self.log: LocalLog | None = None
        self.profile: Profile | None = None
        self.sessions: int | None = None
        self.grid: Grid | None = None
        self.release: Release | None = None
        self.found = Found()
        self.comparison: Comparison | None = None
        self._browsing = Browsing(self.jobs)
        self._hits: dict[tuple[LocalLog, str, str, str], Hits] = {}
        self._state = State(logs=list(logs), reading=reading)
        check_kept(self.state.steps)
        if project is not None and audit is None:
            remove_unfinished(project.file(RUNS))

    @property
    def state(self) -> State:
        """What is chosen."""
        return self._state if self.project is None else self.project.state

    @property
    def read_only(self) -> bool:
        """Whether nothing can be decided, made or signed."""
        return self.audit is not None

    @property
    def open_log(self) -> LocalLog:
        """The log.

        Raises:
            QueryveilError: If it is not read yet.
        """
        if self.log is None:
            raise QueryveilError("The log is not read yet; wait until it is, or say how to read it.")
        return self.log

    @property
    def run(self) -> Path:
        """The folder of the current release, with its recipe, certificate, user map and results."""
        if self.project is None or self.state.release is None:
            raise QueryveilError("There is no release yet; make one first.")
        return self.project.file(RUNS) / f"{self.state.release:04d}"

    def change(self, *, later: bool = False, **given: Any) -> None:
        """Change what is chosen, and remember it; `later` if more changes follow, as those of a slider do."""
        with self.lock:
            before = {name: getattr(self.state, name) for name in given}
            try:
                for name, value in given.items():
                    setattr(self.state, name, value)
                if self.project is not None:
                    self.project.save(later=later)
            except BaseException:  # what cannot be remembered is not so
                for name, value in before.items():
                    setattr(self.state, name, value)
                raise

    def note(self, what: str, *, by: str = "", about: str = "") -> None:
        """Write down in the journal what was done."""
        if self.project is not None:
            self.project.note(what, by=by, about=about)

    def check_steps(self, named: str) -> None:
        """Refuse a form about other steps than those that are chosen.

        Raises:
            QueryveilError: If they changed since.
        """
        if named != mark(self.state.steps):
            raise QueryveilError("What is chosen was changed elsewhere since this page was shown; load the page again.")

    # Decisions

    @property
    def decided(self) -> DecisionList:
        """The list of decisions.

        Raises:
            QueryveilError: If nothing can be decided.
        """
        self.check_writable()
        assert self.project is not None  # noqa: S101
        return DecisionList(self.project.file(DECISIONS), self.lock)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the reviewer decided, in order."""
        return () if self.project is None else decisions_in(self.project.file(DECISIONS))

    def hits(self, decision: Decision, *, count: bool = True) -> Hits | None:
        """How many queries and events of the log a decision is about, counted once.

        Args:
            decision: The decision.
            count: Whether to count now; otherwise None if that was not done before, as without a log.
        """
        log = self.log
        if log is None:
            return None
        key = log, decision.kind, decision.of, decision.text
        if key not in self._hits and count:
            self._hits = {known: found for known, found in self._hits.items() if known[0] is log}
            self._hits[key] = hits_of(decision, log)
        return self._hits.get(key)

    @property
    def outdated(self) -> bool:
        """Whether steps or decisions changed since the release was made."""
        if self.release is None or self.read_only:
            return False
        made = self.state.released, decisions_in(self.run / DECISIONS)
        return made != (self.state.steps, self.decisions)

    def method(self) -> Method:
        """What is chosen, with the decisions applied."""
        if self.project is None or not self.decisions:
            return method_of(self.state.steps)
        return method_of(decided_steps(self.state.steps, self.project.file(DECISIONS)))

    # Jobs

    def read(self) -> Job:
        """Read the log, and find what the project holds already."""
        return self.jobs.start("read", "Reading the log", self._read)

    def check_unreleased(self) -> None:
        """Refuse to read the log in another way if a release was made of it as it was read.

        Raises:
            QueryveilError: If there is a release, or work is under way.
        """
        self.check_writable()
        if self.state.release is not None:
            raise QueryveilError("A release was made of the log as it was read; begin another project to read it anew.")
        if self.jobs.active():
            raise QueryveilError("Work on the log is under way; cancel it, or wait until it is done.")

    def read_as(self, reading: Reading) -> Job:
        """Read the log in another way, as long as nothing was released."""
        with self.lock:
            self.check_unreleased()
            self.change(reading=reading, fingerprint=None)
            self.log = self.profile = self.sessions = self.grid = self.comparison = None
            return self.read()

    def _read(self, update: Update) -> None:
        reading = self.state.reading
        release = None if self.audit is None else Release.load(self.audit.release)
        if release is not None and reading.language is None and release.manifest.language is not None:
            reading = reading.model_copy(update={"language": ",".join(release.manifest.language.ids)})
        if release is not None:
            reading = reading.model_copy(update={"stated": release.manifest.input})
        log = self._reader(self.state.logs, reading, update)
        if self.state.fingerprint not in (None, log.fingerprint):
            raise QueryveilError("The log is another one than when the project was begun; name another project.")
        update("counting")
        found, sessions = profile(log), count_sessions(log)
        self.change(fingerprint=log.fingerprint)
        if self.project is not None and not self.read_only and self.project.file(GRID).exists():
            update("loading the tables behind the sliders")
            self.grid = kept_grid(self.project.file(GRID), log)
        if self.project is not None and not self.read_only:
            self.comparison = self.project.kept(COMPARISON, Comparison, log.fingerprint)
        update("opening the release")
        with self.lock:
            self.log, self.profile, self.sessions = log, found, sessions
            self._open_release()

    def _open_release(self) -> None:
        """Open the current release, and what was found about it."""
        log = self.open_log
        if self.audit is not None:
            place, linked = Path(self.audit.release), self.audit.user_map
        elif self.state.release is not None:
            place, made = self.run / RELEASE, self.run / "users.csv"
            linked = str(made) if made.exists() else None
        else:
            return
        release = Release.load(place, log=log, user_map=linked, lists=self.evidence[1])
        self.found = self.found if self.audit is not None else self._kept()
        self.release = release

    def _kept(self) -> Found:
        """What was found about the release before."""
        assert self.project is not None  # noqa: S101
        of, folder = self.manifest_sha256, f"{RUNS}/{self.run.name}"
        statement = statement_beside(self.run / RELEASE)
        return Found(
            self.project.kept(f"{folder}/verification.json", Verification, of),
            self.project.kept(f"{folder}/evaluation.json", Evaluation, of),
            kept_findings(self.run / "attacks.json", of),
            self.project.kept(f"{folder}/judgement.json", Judgement, of),
            statement if statement.exists() else None,
        )

    @property
    def release_folder(self) -> Path:
        """The folder of the release."""
        return Path(self.audit.release) if self.audit is not None else self.run / RELEASE

    @property
    def manifest_sha256(self) -> str:
        """The SHA-256 of the manifest of the release."""
        return hashlib.sha256((self.release_folder / MANIFEST).read_bytes()).hexdigest()

    def count(self) -> Job:
        """Make the tables behind the sliders."""
        self.check_writable()

        chosen = slid(self.state.steps) or Affinity()

        def work(update: Update) -> None:
            rest = beside_sliders(chosen)
            made = grid(self.open_log, progress=lambda step, share: update(f"{step} ({share:.0%})"), **rest)
            assert self.project is not None  # noqa: S101
            made.save(self.project.file(GRID))
            self.grid = made

        return self.jobs.start("count", "Counting what every setting releases", work)

    def anonymize(self) -> Job:
        """Make a release by what is chosen, check it, and keep it in the project."""
        self.check_writable()
        with self.lock:  # as it is now: what is changed while the job waits or runs is of the next release
            self.method()  # what is wrong is said at once
            steps, decisions = list(self.state.steps), self.decisions
        work = partial(self._anonymize, steps, decisions)
        return self.jobs.start("anonymize", "Making the release", work)

    def _anonymize(self, steps: list[RecipeStep], decisions: tuple[Decision, ...], update: Update) -> None:
        assert self.project is not None  # noqa: S101
        number, verification = make_run(self.project.file(RUNS), self.open_log, steps, decisions, update)
        with self.lock:
            self.change(release=number, released=steps, signed=None)
            self.release = None
            self._open_release()
            self._keep("verification", verification)
        self.note("made a release", about=f"run {number}")

    def _keep(self, name: str, value: Any) -> None:
        """Remember something that was found about the release, across a restart if there is a project."""
        with self.lock:
            self.found = Found(**{**vars(self.found), name: value})
            if self.project is not None and not self.read_only:
                self.project.keep(f"{RUNS}/{self.run.name}/{name}.json", value, self.manifest_sha256)

    def check(self) -> Job:
        """Verify the release: every promise, and the release made again."""
        self._released()

        def work(update: Update) -> None:
            update("checking every promise, and making the release again")
            self._keep("verification", self._verified())

        return self.jobs.start("check", "Verifying the release", work)

    def _verified(self) -> Verification:
        certificate, lists = self.evidence
        seen = None if certificate is None else load_certificate(certificate)
        return verify(self.release_folder, self.open_log, certificate=seen, lists=lists)

    @property
    def evidence(self) -> tuple[Path | None, list[Path]]:
        """The certificate of the release, and the lists that it was made with."""
        if self.audit is not None:
            certificate = None if self.audit.certificate is None else Path(self.audit.certificate)
            return certificate, [Path(path) for path in self.audit.lists]
        decided = self.run / DECISIONS
        return self.run / "release.certificate", [decided] if decided.exists() else []

    def judge(self) -> Job:
        """Measure and attack the release, and judge it by the policy."""
        self._released()
        return self.jobs.start("judge", "Evaluating and attacking the release", self._judge)

    def _judge(self, update: Update) -> None:
        release, log = self._released(), self.open_log
        if self.found.verification is None:
            update("verifying")
            self._keep("verification", self._verified())
        self._keep("evaluation", evaluate(release, log, progress=lambda step: update(f"measuring: {step}")))
        findings = attack(release, log, progress=lambda step: update(f"attack: {step}"))
        with self.lock:
            self.found = Found(**{**vars(self.found), "findings": findings})
            if self.project is not None and not self.read_only:
                content = json_text({"manifest_sha256": self.manifest_sha256} | findings.as_dict())
                private_write(self.run / "attacks.json", content.encode())
        update("judging")
        self._keep("judgement", judge(self.policy, gather(release, log, findings, self.found.verification)))

    def compare(self, methods: Sequence[str], ks: Sequence[int]) -> Job:
        """Compare methods on the log."""
        self.check_writable()

        def work(update: Update) -> None:
            assert self.project is not None  # noqa: S101
            folder = self.project.file(COMPARED)
            found = compare(
                self.open_log,
                folder,
                methods=methods,
                ks=ks,
                threads=1,  # this one, so that the job can be cancelled
                policy=self.policy,
                overwrite=True,
                progress=lambda board: self.jobs.watch("compare", partial(compared, board)),
            )
            with self.lock:
                self.comparison = found
                self.project.keep(COMPARISON, found, found.fingerprint)
                self.change(compared=list(methods), compared_ks=list(ks))

        return self.jobs.start("compare", "Comparing methods", work)

    def browser(self, *, flagged: bool) -> Browser | None:
        """All queries by whether they are released; None while a job sorts them, or looks for personal data."""
        return self._browsing.browser(self._released(), self.open_log, flagged=flagged)

    def close(self) -> None:
        """End all work."""
        self.jobs.close()
        if self.project is not None:
            self.project.close()

    def check_writable(self) -> None:
        """Refuse to change anything if this is an audit.

        Raises:
            QueryveilError: If it is.
        """
        if self.read_only or self.project is None:
            raise QueryveilError("This studio only looks at a release; start it with the log alone to make one.")

    def _released(self) -> Release:
        if self.release is None:
            raise QueryveilError("There is no release yet; make one first.")
        return self.release
