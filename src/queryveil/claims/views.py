"""Claims about results that were shown: how many users were shown the same, and how many of them clicked it."""

from typing import ClassVar, Literal

from queryveil.claims.base import Claim, Count, Evidence
from queryveil.claims.users import few_users

_NO_VIEWS = "the log has no views"


class ViewUsers(Claim):
    """Each released view of a query was shown to at least `users` users."""

    kind: Literal["view-users"] = "view-users"
    users: Count
    ranks: bool = False
    """Whether its rank is meant as well."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        what, names = ("rank of a view", "query, url, rank") if self.ranks else ("view", "query, url")
        return f"Every released {what} shares its ({names}) with at least {self.users} users who were shown it."

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        what = "rank of a view" if self.ranks else "view"
        return f"Every released {what} was shown to at least {self.users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Count the distinct users who were shown what is released."""
        if not evidence.log.has_views:
            return _NO_VIEWS
        if "url" not in evidence.columns:
            return "the release has no column 'url'"
        return few_users(evidence, ("url", *(["rank"] if self.ranks else [])), self.users, "views")


class ClickedUsers(Claim):
    """Whether a view was clicked is released only where enough users clicked, and enough did not, if any."""

    kind: Literal["clicked-users"] = "clicked-users"
    users: Count
    exact: ClassVar[str] = (
        "Every released view that says whether it was clicked shares its (query, url, rank, clicked), or without a rank"
        " its (query, url, clicked), with at least {users} users, and views with the same (query, url, rank) all say"
        " it, or none does."
    )
    short: ClassVar[str] = "Whether a view was clicked is shared by at least {users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Count the users of every released value, and look for views of one kind of which only some have a value."""
        if not evidence.log.has_views:
            return _NO_VIEWS
        if "clicked" not in evidence.columns:
            return "the release has no column 'clicked'"
        names = f"JOIN {evidence.queries} q ON q.query_id = t.query_id JOIN {evidence.urls} u ON u.url_id = t.url_id"
        found = evidence.first(
            "SELECT q.query AS query, u.url AS url FROM (SELECT query_id, url_id, rank, count(*) AS n,"  # noqa: S608  # tables of ours
            f" count(clicked) AS known FROM {evidence.rows} WHERE url_id IS NOT NULL GROUP BY query_id, url_id, rank)"
            f" AS t {names} WHERE t.known > 0 AND t.known < t.n ORDER BY q.query, u.url LIMIT 1"
        )
        if found is not None:
            return f"only some views of '{found[1]}' for '{found[0]}' with the same rank say whether they were clicked"
        # A view without a rank may have had any.
        found = evidence.first(
            "WITH ours AS (SELECT query_id, url_id, rank, clicked FROM"  # noqa: S608  # tables of ours and a checked number
            f" {evidence.rows} WHERE clicked IS NOT NULL GROUP BY query_id, url_id, rank, clicked), people AS (SELECT"
            " t.query_id AS query_id, t.url_id AS url_id, t.rank AS rank, t.clicked AS clicked, v.user_id AS user_id"
            " FROM ours t LEFT JOIN views v ON v.query_id = t.query_id AND v.url_id = t.url_id"
            " AND v.clicked = t.clicked AND (t.rank IS NULL OR v.rank = t.rank)"
            " GROUP BY t.query_id, t.url_id, t.rank, t.clicked, v.user_id)"
            " SELECT q.query AS query, u.url AS url, t.clicked AS clicked, t.n AS n FROM (SELECT query_id, url_id,"
            " rank, clicked, count(user_id) AS n FROM people GROUP BY query_id, url_id, rank, clicked) AS t"
            f" {names.replace('JOIN', 'LEFT JOIN')} WHERE t.n < {self.users} ORDER BY q.query, u.url, t.clicked LIMIT 1"
        )
        if found is None:
            return None
        what = "clicked" if found[2] else "not clicked"
        return f"the view of '{found[1]}' for '{found[0]}', {what}, has {found[3]} users"
