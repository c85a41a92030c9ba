"""What a policy holds, and how it is read from a file.

max_linkage = 0.05      # a TOML file holds what differs from the shipped default
min_planted_accounts = 10
"""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queryveil.errors import QueryveilError, did_you_mean

DEFAULT = "default"

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_SHARE = "a number from 0 to 1"


class Policy(BaseModel):
    """What a release must meet. The shipped file policy/default.toml has the source of every number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    max_linkage: Share = Field(0.09, description=_SHARE)
    max_attribution: Share = Field(0.09, description=_SHARE)
    max_token_recovery: Share = Field(0.09, description=_SHARE)
    max_exposed_queries: int = Field(0, ge=0, description="a whole number of at least 0")
    min_planted_accounts: Literal["k"] | Annotated[int, Field(ge=0)] = Field(
        "k", description='a whole number of at least 0, or "k"'
    )
    max_residual_pii: float = Field(0.0, ge=0, allow_inf_nan=False, description="a number of at least 0")
    min_k: int = Field(5, ge=1, description="a whole number of at least 1")
    max_epsilon: float = Field(10.0, gt=0, allow_inf_nan=False, description="a number above 0")
    max_delta: Share = Field(1e-4, description=_SHARE)

    def __init__(self, **limits: Any) -> None:
        try:
            super().__init__(**limits)
        except ValidationError as error:
            raise QueryveilError(_fault(limits, error)) from None


def load_policy(path: str | Path | None = None) -> Policy:
    """Read a policy.

    Args:
        path: A TOML file with what differs from the built-in default; None or `default` for the default itself.

    Raises:
        QueryveilError: If the file cannot be read, or has an unknown key or a wrong value.
    """
    if path is None or str(path) == DEFAULT:
        return Policy(**tomllib.loads(shipped()))
    try:
        given = tomllib.loads(Path(path).read_text("utf-8"))
    except UnicodeDecodeError:
        raise QueryveilError(f"The policy {path} is not UTF-8; convert it first.") from None
    except OSError:
        raise QueryveilError(
            f"There is no readable policy file '{path}'; give a TOML file, or '{DEFAULT}' for the built-in policy."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise QueryveilError(
            f"The policy {path} is not TOML: {error}; write lines such as max_linkage = 0.09."
        ) from None
    try:
        return Policy(**given)
    except QueryveilError as error:
        raise QueryveilError(f"The policy {path} is wrong: {error}") from None


def shipped() -> str:
    """The text of the built-in policy, with the source of every number."""
    return (files("queryveil.assess.policy") / f"{DEFAULT}.toml").read_text("utf-8")


def _fault(given: dict[str, Any], error: ValidationError) -> str:
    """What is wrong with a policy, in one sentence."""
    known = Policy.model_fields
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        return f"'{strange}' is no limit of a policy; {did_you_mean(strange, known)}."
    name = str(error.errors()[0]["loc"][0])
    return f"'{name}' must be {known[name].description}. Got {given[name]!r} instead."
