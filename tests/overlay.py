"""Import queryveil with files added to it: those below the folder in OVERLAY stand in front of the package's own."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_FOLDER = Path(os.environ["OVERLAY"])


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from the overlay, as if it lay where the package has it; data beside it is found there."""

    def __init__(self, fullname: str, path: str, file: Path) -> None:
        super().__init__(fullname, path)
        self._file = file

    def get_code(self, fullname: str) -> object:
        return compile(self._file.read_text("utf-8"), self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        place = _FOLDER.joinpath(*fullname.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.exists():
                known = importlib.machinery.PathFinder.find_spec(fullname, path)
                origin = str(file) if known is None or known.origin is None else known.origin
                folders = None if known is None else known.submodule_search_locations
                return importlib.util.spec_from_file_location(
                    fullname, origin, loader=_Loader(fullname, origin, file), submodule_search_locations=folders
                )
        return None


sys.meta_path.insert(0, _Finder())
