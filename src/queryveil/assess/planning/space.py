"""What a plan chooses from: for each aim some families of methods and pipelines, each with several values of k."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from queryveil.assess.comparison import Configuration, looking_in
from queryveil.assess.policy import Policy
from queryveil.errors import QueryveilError, option
from queryveil.log import LocalLog
from queryveil.methods import METHODS, Method, Pipeline, Scrub
from queryveil.methods.pipeline import with_parameters
from queryveil.methods.recipe import load_recipe

Aim = Literal["long-tail", "sessions", "profiles", "statistics"]
AIMS: tuple[Aim, ...] = get_args(Aim)

THETAS = (0.95, 0.9, 0.8, 0.7)
FACTORS = (1, 1.2, 1.4, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
"""The values of k, as multiples of the smallest that the policy allows; a smaller k cannot meet it."""

_Step = dict[str, Any]
"""A method and its parameters, as a recipe has them."""


@dataclass(frozen=True)
class Family:
    """A method or pipeline whose parameters are fixed, but for k.

    Attributes:
        name: What it is called.
        steps: The method, or the steps of the pipeline.
        ks: The values of k, ascending; none for a differentially private method.
    """

    name: str
    steps: tuple[_Step, ...]
    ks: tuple[int, ...] = ()

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """One for each k, ascending; what is released shrinks from one to the next."""
        return tuple(self._with(k) for k in self.ks or (None,))

    def _with(self, k: int | None) -> Configuration:
        # As by default, but stated, so that a recipe says it.
        value = {} if k is None else {"k": k, "min_term_users": k}
        steps = [with_parameters(step, value) for step in self.steps]
        name = self.name if k is None else f"{self.name}, k = {k}"
        if len(steps) == 1:
            return Configuration(name, steps[0]["method"], k, steps[0]["parameters"])
        return Configuration(name, Pipeline.name, k, {"steps": steps})


@dataclass(frozen=True)
class Space:
    """What is tried for an aim.

    Attributes:
        families: The families; of equals the first wins.
        left_out: What is not tried, each with the reason.
    """

    families: tuple[Family, ...]
    left_out: tuple[str, ...]


def method_of(configuration: Configuration) -> Method:
    """The method of a configuration, with its parameters."""
    return METHODS[configuration.method](**configuration.parameters)


def space(aim: Aim, policy: Policy, log: LocalLog, *, taxonomy: str, web_directory: str | None) -> Space:
    """What is tried for an aim. Of the log, only the number of users and whether it has times count.

    Args:
        aim: What the release is for.
        policy: What it must meet; the smallest k, epsilon and delta are those of the policy.
        log: The log.
        taxonomy: Where the methods that need it look queries up.
        web_directory: Where `search` looks sites up; without it, `search` is not tried.
    """
    least = max(policy.min_k, 2)
    ks = tuple(k for k in dict.fromkeys(math.ceil(round(least * factor, 6)) for factor in FACTORS) if k <= log.n_users)
    if aim != "statistics" and not ks:
        return Space(
            (), (f"Everything: the policy asks for a k of {least}, and the log has only {log.n_users} users.",)
        )
    named, left_out = _MAKERS[aim](policy, web_directory)
    if aim == "sessions" and not log.has_times:
        return Space((), ("Everything: the log has no times, so it has no sessions.",))
    families = []
    for name, steps in named:
        looking = tuple(
            step | {"parameters": looking_in(step["method"], step["parameters"], taxonomy, web_directory)}
            for step in steps
        )
        family = Family(name, looking, () if aim == "statistics" else ks)
        try:
            method_of(family.configurations[0])
        except QueryveilError as error:
            left_out = [*left_out, f"{name}: {error}"]
        else:
            families.append(family)
    return Space(tuple(families), tuple(left_out))


_Named = list[tuple[str, Sequence[_Step]]]


def _step(method: str, **parameters: Any) -> _Step:
    return {"method": method, "parameters": parameters}


def _shipped(recipe: str, **values: Any) -> list[_Step]:
    """The steps of a shipped pipeline, with other values."""
    return [with_parameters(step, values) for step in load_recipe(recipe).parameters["steps"]]


_SCRUB = _step(Scrub.name, how="remove")
_OTHERS = {
    "rules, hash, poblete": "they have no k that decides how many people are behind a query, or need clicks",
    "clump, partition, wngen": "they release terms of a taxonomy instead of queries",
}


def _queries(policy: Policy, recipe: str, link: str) -> tuple[_Named, list[str]]:
    """Families that choose queries, linked or not."""
    found: _Named = []
    for theta in THETAS:
        found.append((f"{recipe}, θ = {theta:g}", _shipped(recipe, theta=theta)))
        found.append((f"affinity, θ = {theta:g}", [_step("affinity", theta=theta, link=link)]))
    accounts = policy.min_planted_accounts
    left_out = []
    if accounts == "k":
        left_out.append(
            f"affinity with {option('min_query_users')}: the policy asks for k planted accounts, and with k people"
            " behind each query itself affinity releases what equality does."
        )
    elif accounts > 1:
        for theta in THETAS:
            steps = _shipped(recipe, theta=theta, min_query_users=accounts)
            found.append((f"{recipe}, θ = {theta:g}, min_query_users = {accounts}", steps))
    found.append(("scrub, equality", [_SCRUB, _step("equality", link=link)]))
    found.append(("equality", [_step("equality", link=link)]))
    return found, [
        *left_out,
        *_others("odp, search, mdav", f"they release shared records: {option('keep', 'profiles')}"),
    ]


def _long_tail(policy: Policy, web_directory: str | None) -> tuple[_Named, list[str]]:
    found, left_out = _queries(policy, "publish-queries", "none")
    return found, [
        *left_out,
        f"link = session, link = user: the long tail needs no links: {option('keep', 'sessions')}",
    ]


def _sessions(policy: Policy, web_directory: str | None) -> tuple[_Named, list[str]]:
    found, left_out = _queries(policy, "publish-sessions", "session")
    return found, [
        *left_out,
        "link = user: an attacker with half of a history finds most users again",
        f"other lengths of sessions ({option('session_gap')}, {option('session_events')})",
    ]


def _profiles(policy: Policy, web_directory: str | None) -> tuple[_Named, list[str]]:
    found: _Named = [
        (f"publish-profiles, θ = {theta:g}", _shipped("publish-profiles", theta=theta)) for theta in THETAS
    ]
    found += [
        ("scrub, affinity, mdav", [_SCRUB, _step("affinity", theta=0.8), _step("mdav")]),
        ("equality, odp", [_step("equality"), _step("odp")]),
        ("scrub, odp", [_SCRUB, _step("odp")]),
        ("odp", [_step("odp")]),
        ("mdav", [_step("mdav")]),
    ]
    if web_directory is not None:
        found.append(("search", [_step("search")]))
    missing = [] if web_directory else [f"search: no web directory was given ({option('web_directory', 'DIR')})"]
    rest = f"they release no records that people share: {option('keep', 'long-tail')} or sessions"
    return found, [*missing, *_others("equality, affinity", rest)]


def _statistics(policy: Policy, web_directory: str | None) -> tuple[_Named, list[str]]:
    private = {"epsilon": policy.max_epsilon, "delta": policy.max_delta}
    found: _Named = [
        ("publish-counts", _shipped("publish-counts", **private)),
        ("dp-set", [_step("dp-set", **private)]),
        ("zealous", [_step("zealous", **private)]),
    ]
    return found, [
        "counts: by query alone and with noise it is zealous",
        "all other methods: they are not differentially private, so statistics of day after day add up",
    ]


def _others(names: str, why: str) -> list[str]:
    return [f"{name}: {reason}" for name, reason in {names: why, **_OTHERS}.items()]


_MAKERS: dict[Aim, Callable[[Policy, str | None], tuple[_Named, list[str]]]] = {
    "long-tail": _long_tail,
    "sessions": _sessions,
    "profiles": _profiles,
    "statistics": _statistics,
}
