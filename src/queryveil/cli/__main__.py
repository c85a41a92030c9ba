"""So that `python -m queryveil.cli` works where the script is not on the path."""

from queryveil.cli import main

main()
