"""Semantic MDAV: microaggregation of users by the meaning of their queries.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013).
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from queryveil.claims import Claim, IssuedQueries, RecordUsers
from queryveil.errors import QueryveilError, parameter
from queryveil.kernels.digest import digests
from queryveil.kernels.types import Bools
from queryveil.knowledge import Links, categorize, taxonomy_name
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import keyed
from queryveil.methods.base import Method, Reason, check_k
from queryveil.methods.microaggregation import mdav_tables, navarro_tables, record_tables
from queryveil.methods.microaggregation.common import (
    Grouping,
    Searches,
    draw_keys,
    groups_made,
    load_records,
    parts_of,
    plural,
    promises,
    release_records,
)
from queryveil.methods.microaggregation.interests import (
    MATRIX,
    Rows,
    distances,
    group_users,
    interests_of,
    own_counts,
    own_share,
    queries_of,
    replaced,
    representatives,
    strings_of,
)
from queryveil.methods.microaggregation.navarro import Features, prototypes
from queryveil.release import Release
from queryveil.text.arrays import byte_spans

EXACT = MATRIX
BLOCK = 2_000
_LINKED = "users with a query with a category"
_ORDERS = {
    "semantic": "their main interests",
    "strings": "their most repeated queries",
    "features": "the domains they click most, or of time where nobody clicks",
}

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


class Mdav(Method):
    """Give users whose queries mean alike one record of queries that stand for all of them (Batet et al. 2013).

    Every noun phrase of a query becomes a category. Users are grouped by MDAV under a distance that knows how much two
    categories have in common. The record of a group holds, of each user, the categories nearest to the centre of the
    group; each is replaced by a query that anybody in the log issued for that category. Clicks, times and extra columns
    are dropped, and so are users without a category. The distances `strings` and `features` know nothing of meaning;
    they keep all users, and records hold queries of their own users alone.
    """

    makes = "records"
    name: ClassVar[str] = "mdav"
    extras: ClassVar[tuple[str, ...]] = ("search",)  # for the distance `features`
    plain: ClassVar[str] = (
        "At least {k} people whose queries mean alike share one record of queries that stand for all of them. "
        "The queries are published as they were typed."
    )
    slow: ClassVar[bool] = True
    summary: ClassVar[str] = "group users with similar queries and give each group one representative record"

    k: int = Field(5, ge=2, description="least users who share a record")
    distance: Literal["semantic", "strings", "features"] = Field(
        "semantic",
        description="compare users by what their queries mean, by the queries as they are, or by time, clicks, spelling"
        " and length (Navarro-Arribas et al. 2012)",
    )
    taxonomy: str = Field(
        "wordnet",
        description="where queries are looked up: wordnet, a web directory, or several with commas",
    )
    linker: Literal["phrases", "text", "terms", "embedding"] = Field(
        "phrases",
        description="what is looked up for a query; in a web directory, phrases also uses sites and clicks, and text,"
        " as in the paper, does not",
    )
    compact: bool = Field(False, description="write each record once, with the number of its users")
    grouping: Grouping = Field("auto", description="compare all users, or only inside blocks; auto by their number")

    @model_validator(mode="after")
    def _taxonomy_is_used(self) -> "Mdav":
        unused = next((name for name in ("taxonomy", "linker") if name in self.model_fields_set), None)
        if self.distance != "semantic" and unused is not None:
            raise ValueError(
                f"{parameter('Mdav', unused)} is for the distance semantic; the distance {self.distance} looks nothing"
                " up. Leave it out."
            )
        return self

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """With the same seed, which decides which queries a record has."""
        return "seed"

    def parameters(self) -> dict[str, Any]:
        """The parameters that count, as the manifest holds them: without the folder of the taxonomy."""
        given = super().parameters() | {"taxonomy": taxonomy_name(self.taxonomy)}
        looked_up = ("taxonomy", "linker") if self.distance != "semantic" else ()
        return {name: value for name, value in given.items() if name not in looked_up}

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Group users by MDAV and release a record for each group."""
        check_k(self, log.n_users)
        if not isinstance(log, LocalLog):
            return self.release_by_tables(log, seed=seed)
        if self.distance == "semantic":
            return self.release(log, categorize(log, self.taxonomy, self.linker), seed=seed)
        return self.release(log, None, seed=seed)

    def release(self, log: LocalLog, links: Links | None, *, seed: int) -> Release:
        """Group the users of a log and release the record of each group.

        Args:
            log: The log.
            links: Where its queries sit in a tree of topics, for the distance `semantic`.
            seed: Random seed.
        """
        if (links is None) != (self.distance != "semantic"):
            raise QueryveilError("Links are for the distance semantic, and for that alone.")
        check_k(self, log.n_users)
        searches = Searches.of(log)
        users = np.arange(log.n_users)
        if self.distance == "features":
            features = Features.of(log, searches)
            group, parts = self._grouped(users, features.rows_of, features.order, log.engine.threads)
            key = draw_keys(log, self, seed, parts)[1]
            of, query = prototypes(searches, group, keyed(key, digests(*byte_spans(log.query_text))[0]))
        else:
            interests = strings_of(searches, log.n_queries) if links is None else interests_of(searches, links)
            users = np.flatnonzero(interests.sizes)
            check_k(self, len(users), _LINKED)
            some = interests.take(users)
            mine, parts = self._grouped(
                users, lambda block: distances(some.take(block)), some.order, log.engine.threads
            )
            group = np.full(log.n_users, -1, np.int32)
            group[users] = mine
            key = draw_keys(log, self, seed, parts)[1]
            if links is None:
                of, query = representatives(some, mine, keyed(key, digests(*byte_spans(log.query_text))[0]))
            else:
                of, item = representatives(some, mine)
                digest = log.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
                # The first user of a group gives it a name.
                name = digest[users[np.unique(mine, return_index=True)[1]]].astype(np.uint64)
                query = replaced(of, item, queries_of(links, searches), name, key)
        size = np.bincount(group[users])
        notes = self._notes(len(size), int(size.min()), int(size.max()), parts, log.n_users - len(users))
        if self.distance == "semantic":
            notes.append(own_share(*own_counts(searches, group, of, query)))
        with log.workspace() as work:
            records = load_records(work, group, of, query, compact=self.compact)
            return release_records(self, log, records, self._claims, seed=seed, notes=notes)

    @property
    def _claims(self) -> tuple[Claim, ...]:
        if self.distance == "semantic":
            return IssuedQueries(), RecordUsers(users=self.k, compact=self.compact)
        return promises(self.k, self.compact)

    def _parts(self, users: int) -> int:
        return parts_of(users, self.k, self.grouping, EXACT, BLOCK)

    def _grouped(
        self, users: Longs, rows_of: Rows, order: Callable[[], Longs], threads: int | None
    ) -> tuple[Ints, int]:
        parts = self._parts(len(users))
        return group_users(rows_of, order() if parts > 1 else np.arange(len(users)), parts, self.k, threads), parts

    def _notes(self, groups: int, least: int, most: int, parts: int, left_out: int) -> list[str]:
        notes = [groups_made(groups, least, most, parts, _ORDERS[self.distance])]
        if left_out:
            notes.append(f"{plural(left_out, 'user')} without a category {'is' if left_out == 1 else 'are'} left out.")
        return notes

    def release_by_tables(self, log: QueryLog, *, seed: int) -> Release:
        """The same release by tables, for a log that is not in the memory of this machine."""
        taxonomy = self.taxonomy if self.distance == "semantic" else None
        with log.workspace() as work:
            # All but the records is let go of before these are released.
            with log.workspace() as steps:
                users, own = log.n_users, []
                if self.distance == "features":
                    parts = self._parts(users)
                    described = navarro_tables.describe_users(log, steps)
                    blocks = navarro_tables.cut_blocks(log, steps, described, parts)
                    key = draw_keys(log, self, seed, parts)[1]
                    made = navarro_tables.make_records(log, steps, described, blocks, key, self.k)
                else:
                    counted, users = mdav_tables.count_interests(log, steps, taxonomy, self.linker)
                    check_k(self, users, _LINKED)
                    parts = self._parts(users)
                    blocks = mdav_tables.cut_blocks(log, steps, counted, taxonomy, users, parts)
                    key = draw_keys(log, self, seed, parts)[1]
                    made = mdav_tables.make_records(log, steps, counted, blocks, taxonomy, key, self.k)
                    steps.drop(counted.interests, counted.profiles)
                if self.distance == "semantic":
                    own = [mdav_tables.share_of_own(steps, made)]
                records, found = record_tables.load_records(log, work, made, compact=self.compact)
            notes = self._notes(found.groups, found.least, found.most, parts, log.n_users - users) + own
            return release_records(self, log, records, self._claims, seed=seed, notes=notes)

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Who could have brought the query in."""
        issued = f"{plural(int(log.users_per_query[query_id]), 'user')} issued it"
        if self.distance == "semantic":
            found = f"{issued}; which query stands for a category is random"
            return [Reason("the query stands for a category of some record", None, found)]
        how = "those repeated most" if self.distance == "strings" else "by how often it was issued"
        return [Reason("the query is in the record of a group whose user issued it", None, f"{issued}; {how}")]
