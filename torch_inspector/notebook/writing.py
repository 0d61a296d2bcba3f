"""Writes the report of `%%torchcheck` to the files that its words name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_inspector.notebook.options import ReportFiles
from torch_inspector.views.card import Card
from torch_inspector.views.html import to_page
from torch_inspector.views.message import encodable
from torch_inspector.views.plain import one_line
from torch_inspector.views.quantity import size

_SHOWN = 120


def write_report(files: ReportFiles, card: Card, message: dict[str, Any]) -> list[str]:
    """Writes what is wanted; a line for each file, whether it went well or not."""
    kinds: list[tuple[str, Callable[[], str]]] = [
        (files.json, lambda: json.dumps(encodable(message), ensure_ascii=False, allow_nan=False, indent=1) + "\n"),
        (files.html, lambda: to_page(card)),
    ]
    return [_written(name, text()) for name, text in kinds if name]


def _written(name: str, text: str) -> str:
    shown = one_line(name, _SHOWN)
    try:
        path = Path(name).expanduser()
        reason = _obstacle(path)
        if not reason:
            path.write_text(text, encoding="utf-8")
    except (OSError, ValueError, RuntimeError) as error:
        reason = one_line((error.strerror if isinstance(error, OSError) else "") or "no path", _SHOWN).lower()
    return f"{shown} was not written: {reason}" if reason else f"{shown}: report written, {size(len(text.encode()))}"


def _obstacle(path: Path) -> str:
    """Why the path cannot be written; empty if nothing is known against it."""
    if path.is_dir():
        return "it is a folder"
    # A pipe would wait for its reader, and the notebook with it.
    if path.exists() and not path.is_file():
        return "it is no ordinary file"
    return "" if path.parent.is_dir() else f"there is no folder {one_line(str(path.parent), _SHOWN)}"
