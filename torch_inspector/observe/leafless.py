"""A tensor that was computed, where torch takes only one that was made: for an optimizer, or for a deep copy."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import NamedFact, Place, syntax
from torch_inspector.observe import kinds, lines
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.raised import traceback_of
from torch_inspector.observe.scenes import scenes_of, tensors_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places
    from torch_inspector.observe.scenes import Scene, Seen

# Functions of torch that refuse it, and what they call it.
_REFUSING = {"add_param_group": "param", "__deepcopy__": "self"}
_ANY_LINE = 1 << 30


def leafless_fact(error: BaseException, places: Places) -> NamedFact | None:
    """The tensor that was refused, by the name that the user's innermost code has for it."""
    refused = _refused(error)
    if refused is None:
        return None
    shape = tuple(refused.shape)
    for scene in scenes_of(error, places):
        seen = next((one for one in tensors_of(scene) if one.tensor is refused), None)
        if seen is not None:
            return NamedFact(seen.path, seen.kind, shape, _made_at(seen, scene, places))
    return NamedFact("", shape=shape)


def _refused(error: BaseException) -> Any:
    """What torch's own frame holds."""
    entry, found = traceback_of(error), None
    while entry is not None:
        frame = entry.tb_frame
        name = _REFUSING.get(frame.f_code.co_name)
        if name is not None and str(frame.f_globals.get("__name__")).startswith("torch."):
            with locals_of(frame) as values:
                found = values.get(name)
        entry = entry.tb_next
    return found if kinds.is_a(found, torch.Tensor) else None


def _made_at(seen: Seen, scene: Scene, places: Places) -> Place | None:
    """The line that computes it: of the same code for a variable, of any method for an attribute."""
    tree, name = scene.file.tree, seen.path
    line = lines.assignment_line(tree, name, scene.line - 1) if tree is not None else None
    if line is not None:
        return places.place(scene.frame, line)
    for file in places.latest():
        line = _line_in(file.tree, name) if file.tree is not None else None
        if line is not None:
            return Place(file.cell, line + file.offset)
    return None


def _line_in(tree: ast.Module, name: str) -> int | None:
    if name.isidentifier():
        return lines.assignment_line(tree, name, _ANY_LINE)
    stored = f"self.{name.rpartition('.')[2]}"
    given = [node for node in syntax.walk(tree) if isinstance(node, ast.Assign) and _gives(node, stored)]
    return max((node.lineno for node in given), default=None)


def _gives(node: ast.Assign, stored: str) -> bool:
    """True if an assignment gives an attribute a value that may be computed."""
    targets = (one for target in node.targets for one in syntax.walk(target))
    return not isinstance(node.value, ast.Constant) and any(dotted(one) == stored for one in targets)
