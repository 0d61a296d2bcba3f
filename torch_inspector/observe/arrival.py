"""Tells when the user imports torch, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class TorchArrival(MetaPathFinder):
    """Calls back once, right after the first `import torch` has finished. Imports stay what they are.

    Args:
        arrived: What to call; it must not raise.
    """

    def __init__(self, arrived: Callable[[], None]) -> None:
        self._arrived = arrived

    def install(self) -> None:
        """Waits for torch, unless it is here already."""
        if "torch" not in sys.modules and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Stops waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _ran(self) -> None:
        if self in sys.meta_path:
            self.remove()
            self._arrived()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Lets the ordinary finders find torch, and notes when its code has run."""
        if fullname != "torch":
            return None
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Noting(spec.loader, self._ran)
                return spec
        return None


class _Noting(Loader):
    """Runs the real loader, takes itself out of the way, and calls back."""

    def __init__(self, loader: Loader, arrived: Callable[[], None]) -> None:
        self._loader = loader
        self._arrived = arrived

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the real loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the real loader does; afterwards the module looks as if that had been its only loader."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._arrived()
