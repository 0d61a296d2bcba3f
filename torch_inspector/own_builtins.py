"""Builtins of our own: what a cell puts in the place of `max` or `hash` is meant for the user's code and not for ours.

Functions look builtins up where their module had them when they were made. So the modules of this package are given a
copy, which was taken when the package was imported; modules found by other ways than folders of files do without.
"""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType

_OWN = dict(vars(builtins))


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Runs the code of a module, after it has got its builtins."""
        vars(module)["__builtins__"] = _OWN
        super().exec_module(module)


class _Finder(FileFinder):
    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Finds a module, and has those of its folder found in the same way."""
        spec = super().find_spec(fullname, target)
        for folder in (spec and spec.submodule_search_locations) or ():
            keep(folder)
        return spec


def keep(folder: str) -> None:
    """Has the modules of a folder, and of those below it, loaded with the builtins of now."""
    loaders = (_Loader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)
    sys.path_importer_cache[folder] = _Finder(folder, *loaders)
