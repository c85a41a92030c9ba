"""Scrubbing as the first step of a pipeline: personal data in queries is removed or masked."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from queryveil.errors import QueryveilError
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sharing import Shared, shared
from queryveil.methods.base import Method, Reason
from queryveil.release import Release
from queryveil.scrubbing import DEFAULT_KINDS, check_scrub, scrub


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
            found = scrub(log, self.how, kinds=self.kinds, rare_term_users=rare, countries=countries)
            found.kept = Shared(log.kept)
            return found

        return shared(log, ("scrubbed", self.how, self.kinds, self.rare_term_users, self.countries), made)

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written; countries only if some were chosen, as ever."""
        given = super().parameters()
        return given if self.countries is not None else {k: v for k, v in given.items() if k != "countries"}

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        raise QueryveilError("Scrubbing alone protects nobody; add a step that does, such as affinity or equality.")

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Nothing: what is scrubbed is explained before any step."""
        return []
