"""A pytest plugin: import one module of queryveil with one line changed, as the variable MUTATION says.

Nothing is copied, so that kernels are found compiled; those of a changed module are compiled anew.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

_name, _old, _new = json.loads(os.environ["MUTATION"])


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> object:
        source = self.get_source(fullname)
        return compile(source.replace(_old, _new), self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        found = importlib.machinery.PathFinder.find_spec(fullname, path) if fullname == _name else None
        if found is None:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(fullname, found.origin), origin=found.origin)


sys.meta_path.insert(0, _Finder())
if ".kernels." in _name:
    from queryveil.kernels import _jit

    _folder = tempfile.TemporaryDirectory()
    _jit._cache_folder = lambda: _folder.name
