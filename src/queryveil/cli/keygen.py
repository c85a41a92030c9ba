"""queryveil keygen: make a key to sign releases with."""

from typing import Annotated

import typer

from queryveil.cli import options


def keygen(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The file of the private key.", show_default=False)],
) -> None:
    """Make an Ed25519 key to sign releases with: KEY, which only its owner can read, and KEY.pub to give to others."""
    from queryveil.assess.signing import new_key

    public = options.printable(str(new_key(key)))
    typer.echo(
        f"Made {options.printable(key)}; keep it secret. Give others {public} in a way that nobody can tamper with."
    )
