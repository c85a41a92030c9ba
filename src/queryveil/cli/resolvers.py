"""The options that say how the site of a query is found, for the verbs that look sites up."""

from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.errors import QueryveilError, did_you_mean

if TYPE_CHECKING:
    from queryveil.knowledge import Resolver, Taxonomy

Named = Annotated[
    str | None,
    typer.Option(
        "--resolver", help="How to find the site of a query, by its domain: clicks or sites.", show_default="clicks"
    ),
]
SendTo = Annotated[
    str | None,
    typer.Option(
        "--send-queries-to",
        metavar="URL",
        help="Send EVERY query to a search engine: SearXNG, or an index of OpenSearch (.../_search).",
    ),
]
Cache = Annotated[
    str | None,
    typer.Option("--cache", metavar="FILE", help="File for its answers, to continue an interrupted run."),
]
Rate = Annotated[float | None, typer.Option("--rate", help="Most queries to send per second.", show_default="1")]
Timeout = Annotated[float | None, typer.Option("--timeout", help="Seconds to wait for an answer.", show_default="10")]

_KNOWN = ("clicks", "sites")


def chosen(
    name: str | None, base: "Taxonomy", url: str | None, cache: str | None, rate: float | None, timeout: float | None
) -> "Resolver | None":
    """The resolver that the options ask for; None if they ask for none."""
    from queryveil.knowledge import Clicks, Remote, Sites

    if url is not None:
        if name is not None:
            raise QueryveilError("Give either --resolver or --send-queries-to, not both.")
        if cache is None:
            raise QueryveilError(
                "--send-queries-to needs --cache FILE, which keeps the answers if the run is interrupted."
            )
        return Remote(
            url,
            cache,
            rate=Remote.rate if rate is None else rate,
            timeout=Remote.timeout if timeout is None else timeout,
        )
    for option, value in (("--cache", cache), ("--rate", rate), ("--timeout", timeout)):
        if value is not None:
            raise QueryveilError(f"{option} is for --send-queries-to; leave it out.")
    if name is not None and name not in _KNOWN:
        raise QueryveilError(f"There is no resolver '{name}'; {did_you_mean(name, _KNOWN)}, or --send-queries-to URL.")
    return Sites(base) if name == "sites" else Clicks() if name == "clicks" else None
