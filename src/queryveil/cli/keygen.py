"""queryveil keygen: make a key to sign releases with."""

from typing import Annotated

import typer

from queryveil.cli import printing


def keygen(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The file of the private key.")],
) -> None:
    """Make an Ed25519 key to sign releases with: KEY, which only its owner can read, and KEY.pub to give to others."""
    from queryveil.assess.signing import new_key

    public = printing.printable(str(new_key(key)))
    typer.echo(
        f"Made {printing.printable(key)}; keep it secret. Give others {public} in a way that nobody can tamper with."
    )
