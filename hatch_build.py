"""Puts the built sidebar into the wheel, and builds it first where that is possible and wanted.

Installing never needs node: a source distribution carries the built sidebar, an editable install takes what is there,
and a wheel that is made from a checkout without npm has none and says so.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SHARE = "share/jupyter/labextensions/torch-inspector"
_SOURCES = ("labextension/src", "labextension/style", "labextension/schema", "labextension/package.json")


class SidebarHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatch calls this for each target."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the files are gathered."""
        root = Path(self.root)
        built = root / "torch_inspector" / "labextension"
        if version != "editable" and _is_stale(root, built):
            self._build(root / "labextension", shutil.which("npm"))
        if not (built / "package.json").is_file():
            self.app.display_warning("torch_inspector is packed without its JupyterLab sidebar: npm is not there")
        elif self.target_name == "wheel":
            build_data["shared_data"][str(built)] = _SHARE

    def _build(self, folder: Path, npm: str | None) -> None:
        if npm is None:
            return
        if not (folder / "node_modules").is_dir():
            subprocess.run([npm, "ci"], cwd=folder, check=True)  # noqa: S603  (our own build)
        subprocess.run([npm, "run", "build:prod"], cwd=folder, check=True)  # noqa: S603


def _is_stale(root: Path, built: Path) -> bool:
    """True if there is a source that is newer than what was built from it, or nothing was built."""
    if not (root / "labextension" / "package.json").is_file():
        return False
    mark = built / "package.json"
    if not mark.is_file():
        return True
    pages = (root / "torch_inspector" / "pitfalls").rglob("*.md")
    files = [file for name in _SOURCES for file in [root / name, *(root / name).rglob("*")]]
    return max(file.stat().st_mtime for file in [*files, *pages] if file.is_file()) > mark.stat().st_mtime
