"""Scrubbing as the first step of a pipeline: personal data in queries is removed or masked."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from queryveil.errors import QueryveilError
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sharing import Shared, shared
from queryveil.methods.base import Method, Reason, plain_name
from queryveil.release import Release
from queryveil.scrubbing import DEFAULT_KINDS, check_scrub, scrub_but
from queryveil.scrubbing.decisions import list_bytes


class Scrub(Method):
    """Remove or mask personal data in queries, and leave out clicks on addresses with such data.

    It reduces the personal data in a release and promises nothing, so it is a step before a method that does.
    """

    name: ClassVar[str] = "scrub"
    plain: ClassVar[str] = "Queries with personal data, such as telephone numbers, were left out or masked first."
    summary: ClassVar[str] = "remove or mask personal data in queries (before another step)"
    makes = "events"
    alone: ClassVar[bool] = False

    how: Literal["remove", "mask"] = Field(
        "remove", description="remove events whose query has personal data, or mask the data"
    )
    kinds: tuple[str, ...] = Field(DEFAULT_KINDS, description="kinds of personal data")
    rare_term_users: int | None = Field(None, ge=2, description="also scrub words that fewer users typed")
    countries: tuple[str, ...] | None = Field(
        None, description="countries whose phone numbers and ids are looked for (default: those of the language)"
    )

    decisions: Path | None = Field(
        None, description="file of decisions, as a reviewer makes them: what is allowed stays as it is"
    )

    @field_validator("decisions")
    @classmethod
    def _has_a_plain_name(cls, path: Path | None) -> Path | None:
        return plain_name(path)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        try:
            check_scrub(self.how, self.kinds, self.rare_term_users, self.countries)
        except QueryveilError as error:
            raise ValueError(str(error)) from None
        return self

    def scrubbed(self, log: QueryLog) -> QueryLog:
        """The scrubbed log, which is made once while the log is shared."""

        def made() -> QueryLog:
            rare, countries = self.rare_term_users, self.countries
            kinds = self.kinds
            found = scrub_but(log, self.decisions, self.how, kinds=kinds, rare_term_users=rare, countries=countries)
            found.kept = Shared(log.kept)
            return found

        decided = None if self.decisions is None else (self.decisions, list_bytes(self.decisions))
        return shared(log, ("scrubbed", self.how, self.kinds, self.rare_term_users, self.countries, decided), made)

    @property
    def lists(self) -> dict[str, Path]:
        """The file of decisions, if there is one."""
        return {} if self.decisions is None else {"decisions": self.decisions}

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written; countries and decisions only if there are some, as ever."""
        given = super().parameters() | {name: path.name for name, path in self.lists.items()}
        missing = {name for name in ("countries", "decisions") if getattr(self, name) is None}
        return {name: value for name, value in given.items() if name not in missing}

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        raise QueryveilError("Scrubbing alone protects nobody; add a step that does, such as affinity or equality.")

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Nothing: what is scrubbed is explained before any step."""
        return []
