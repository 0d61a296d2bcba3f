"""All pitfalls, found by walking the folders: `<subject>/<name>.py` beside `<name>.md`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from torch_inspector.pitfall import Pitfall, from_check

_HERE = Path(__file__).parent


@cache
def all_pitfalls() -> tuple[Pitfall, ...]:
    """Every pitfall of the package, by slug."""
    names = (".".join(path.with_suffix("").relative_to(_HERE).parts) for path in _HERE.glob("*/[!_]*.py"))
    checks = (import_module(f"{__name__}.{name}").check for name in names)
    return tuple(sorted(map(from_check, checks), key=lambda pitfall: pitfall.slug))
