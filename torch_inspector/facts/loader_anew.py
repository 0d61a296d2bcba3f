"""A loader made again with other settings, as the user wrote it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.rebuilt import last_made

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# A longer line is not read at a glance.
_LONGEST = 110


def loader_with(run: Run, place: Place, name: str, size: int | None, **settings: bool) -> str:
    """`loader = DataLoader(data, batch_size=64, drop_last=True)`; with `…` for the data where the call is not known.

    Args:
        run: The run that knows the texts.
        place: Of the loop over the loader.
        name: Of the loader, as the loop has it; a function may have been given another one of that name.
        size: Of its batches.
        settings: What is to be set.
    """
    # A few known calls say all by keywords; a position or a star could be the one that is to be set.
    call = syntax.expression(last_made(run, name)) if name and not place.function else None
    if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "DataLoader" and _is_plain(call):
        given = {str(one.arg): ast.unparse(one.value) for one in call.keywords}
        keywords = {**given, **{key: str(value) for key, value in settings.items()}}
        inside = ", ".join((*map(ast.unparse, call.args), *(f"{key}={value}" for key, value in keywords.items())))
        line = f"{name} = {ast.unparse(call.func)}({inside})"
        if len(line) <= _LONGEST:
            return line
    shown = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"DataLoader(…, batch_size={size}, {shown})"


def _is_plain(call: ast.Call) -> bool:
    """True if data and size alone stand by position, nothing is hidden by stars, and no sampler forbids settings."""
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    named = {one.arg for one in call.keywords}
    return plain and len(call.args) <= 2 and not named & {None, "sampler", "batch_sampler"}  # noqa: PLR2004
