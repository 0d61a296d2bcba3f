"""All pitfalls, found by walking the folders: `<subject>/<name>.py` beside `<name>.md`."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from torch_inspector.failures import Failures
from torch_inspector.pitfall import Pitfall, from_check

_HERE = Path(__file__).parent
_SHOWN = 60

unloaded = Failures()
"""Rule files that could not be loaded; the others work without them."""


@cache
def all_pitfalls() -> tuple[Pitfall, ...]:
    """Every pitfall of the package, by slug."""
    names = (".".join(path.with_suffix("").relative_to(_HERE).parts) for path in _HERE.glob("*/[!_]*.py"))
    found = (pitfall for name in names for pitfall in _loaded(name))
    return tuple(sorted(found, key=lambda pitfall: pitfall.slug))


def _loaded(name: str) -> Iterator[Pitfall]:
    """The pitfall of one file; none, and a note in `unloaded`, if that cannot be loaded."""
    with unloaded.guard(f"rule file {name}"):
        yield from_check(import_module(f"{__name__}.{name}").check)


def find_pitfall(slug: str) -> Pitfall:
    """The pitfall with this slug.

    Raises:
        ValueError: there is none; the message names the nearest one.
    """
    known = {pitfall.slug: pitfall for pitfall in all_pitfalls()}
    if slug in known:
        return known[slug]
    near = get_close_matches(slug, known, n=1, cutoff=0.5)
    shown = slug if len(slug) <= _SHOWN else slug[:_SHOWN] + "…"
    raise ValueError(f"no pitfall is called {shown!r}" + (f"; did you mean {near[0]}?" if near else ""))
