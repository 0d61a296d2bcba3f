"""Has a pitfall stay silent: at a line, in a cell, in this notebook, or always; and undoes that."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_inspector.pitfalls import find_pitfall
from torch_inspector.session import Meant, cell_key
from torch_inspector.views.plain import one_line

if TYPE_CHECKING:
    from torch_inspector.notebook.settings import TorchInspector
    from torch_inspector.session import Session

SCOPES = ("line", "cell", "notebook", "always")
# IPython reads it in every session, after `ipython_config.py`.
FILE = "ipython_config.json"
_SECTION, _NAME = "TorchInspector", "muted"
_LONGEST = 200


class Wish(NamedTuple):
    """What is to be silent where."""

    slug: str
    scope: str
    cell: int | None = None
    """Number of the run whose cell is meant; for a line, of the run that holds the line."""
    line: int | None = None
    on: bool = True
    """False to hear of it again."""


class Muting:
    """Keeps to what the user wants to hear of. A subshell may ask for it while a cell runs.

    Args:
        settings: The settings of the loaded extension.
        session: Knows the cells that have run.
        shell: The IPython shell.
    """

    def __init__(self, settings: TorchInspector, session: Session, shell: Any) -> None:
        self._settings = settings
        self._session = session
        self._shell = shell
        self._lock = threading.Lock()
        self.tell: Callable[[Wish], None] = lambda _: None
        """Gets what was undone by a magic: the front end may keep it in the notebook's file."""
        self.ended = False
        """True when the extension was taken out: panels of that time can still ask, and nobody would heed it."""

    def heed(self, wish: Wish) -> str:
        """Does as wished.

        Returns:
            The file that it was written to; empty where none was.

        Raises:
            ValueError: there is no such pitfall, cell or line, the file cannot be read or written, or it is too late.
        """
        if self.ended:
            raise ValueError("the extension has been unloaded or loaded anew since")
        find_pitfall(wish.slug)
        with self._lock:
            return self._heed(wish)

    def _heed(self, wish: Wish) -> str:
        if wish.scope in ("line", "cell"):
            place, meant = self._place(wish), self._session.settings.meant
            self._session.settings.meant = meant | {place} if wish.on else meant - {place}
            return ""
        written = self._write(wish.slug, on=wish.on) if wish.scope == "always" else ""
        muted = self._settings.muted
        self._settings.muted = muted | {wish.slug} if wish.on else muted - {wish.slug}
        return written

    def forget(self, slug: str) -> bool:
        """Hears of a pitfall again, in this notebook and in those to come; False if it was not muted."""
        muted = slug in self._settings.muted
        scope = "always" if slug in self._written() else "notebook"
        wish = Wish(slug, scope, on=False)
        self.heed(wish)
        self.tell(wish)
        return muted or scope == "always"

    def _place(self, wish: Wish) -> Meant:
        # A copy: a cell that ends adds its run.
        runs = tuple(self._session.runs)
        cell = next((run.cell for run in reversed(runs) if run.cell.number == wish.cell), None)
        if cell is None:
            raise ValueError("the run of this cell is not remembered any more")
        if wish.scope == "cell":
            return Meant(wish.slug, cell_key(cell))
        lines = cell.source.splitlines()
        if wish.line is None or not 0 < wish.line <= len(lines):
            raise ValueError("the cell has no such line")
        return Meant(wish.slug, cell_key(cell), lines[wish.line - 1].strip())

    # the file ------------------------------------------------------------------

    def _write(self, slug: str, *, on: bool) -> str:
        path = self._path()
        whole = _read(path)
        section = whole.setdefault(_SECTION, {})
        if type(section) is not dict:
            raise ValueError(f"{_shown(path)} holds something else under {_SECTION}")
        muted = {*self._configured(), *_texts(section.get(_NAME))}
        section[_NAME] = sorted(muted | {slug} if on else muted - {slug})
        _replace(path, json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        return _shown(path)

    def _path(self) -> Path:
        folder = getattr(getattr(self._shell, "profile_dir", None), "location", None)
        if type(folder) is not str:
            raise ValueError("IPython has no folder for settings here")
        return Path(folder) / FILE

    def _written(self) -> set[str]:
        try:
            section = _read(self._path()).get(_SECTION)
        except ValueError:
            return set()
        return _texts(section.get(_NAME)) if type(section) is dict else set()

    def _configured(self) -> set[str]:
        """What other files of settings mute: the one that is written replaces what they say."""
        config: Any = getattr(self._shell, "config", {})
        return _texts(config[_SECTION].get(_NAME)) if _SECTION in config else set()


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{_shown(path)} cannot be read") from error
    if type(whole) is not dict:
        raise ValueError(f"{_shown(path)} holds no settings")
    return whole


def _replace(path: Path, text: str) -> None:
    """Writes the file as a whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise ValueError(f"{_shown(path)} cannot be written") from error


def _texts(value: Any) -> set[str]:
    return {text for text in value if type(text) is str} if type(value) in (list, tuple, set) else set()


def _shown(path: Path) -> str:
    return one_line(str(path), _LONGEST)
