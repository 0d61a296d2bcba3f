"""What a load was given, as written and as keys with shapes, and whether anybody gets to see what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.shapes import is_tensor, shape_of

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder

Keyed = tuple[tuple[str, Shape], ...]
# Entries of one state that are looked at, and the longest text of one that is repeated.
_ENTRIES, _LONGEST = 2_000, 200


def keyed(state: Any) -> Keyed:
    """Keys of a state dict, with shapes; `()` for what is no tensor."""
    entries = islice(dict.items(state), _ENTRIES)
    return tuple((key, shape_of(one) or () if is_tensor(one) else ()) for key, one in entries if type(key) is str)


def entries_of(state: Any, own: Keyed) -> tuple[tuple[str, ...], bool]:
    """The keys of a whole checkpoint under which are states that a module would take: its keys, each of its shape.

    If there are none, those that have half of them or more, and True: a new head fits no old one.
    """
    wanted = {one for one in own if not one[0].endswith("num_batches_tracked")}
    states = [(key, one) for key, one in islice(dict.items(state), _ENTRIES) if type(key) is str]
    held = [(key, len(wanted & set(keyed(one)))) for key, one in states if wanted and kinds.is_a(one, dict)]
    whole = tuple(key for key, count in held if count == len(wanted))
    return (whole, False) if whole else (tuple(key for key, count in held if 2 * count >= len(wanted)), True)


def own_keyed(module: Any) -> Keyed:
    """The same of what a module would save."""
    return tuple(islice(_saved_by(module), _ENTRIES))


def _saved_by(module: Any) -> Iterator[tuple[str, Shape]]:
    for prefix, one in layers.walk_modules(module):
        fields = kinds.fields_of(one)
        left_out = fields.get("_non_persistent_buffers_set") or ()
        for kind in ("_parameters", "_buffers"):
            for key, value in (fields.get(kind) or {}).items():
                if is_tensor(value) and key not in left_out:
                    yield f"{prefix}.{key}" if prefix else str(key), shape_of(value) or ()


def given_to(recorder: Recorder, frame: FrameType) -> ast.expr | None:
    """The expression that a load was given; None where the text has several in one line."""
    file = recorder.places.file_of(frame)
    loads = [
        node
        for node in (syntax.walk(file.tree) if file is not None and file.tree is not None else ())
        if isinstance(node, ast.Call)
        and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        and _is_load(node)
    ]
    # Of several in one line nobody knows which one runs.
    return loads[0].args[0] if len(loads) == 1 and loads[0].args else None


def given_text(recorder: Recorder, frame: FrameType) -> str:
    """What a load was given, as written: `checkpoint["model"]`; empty for anything that is computed."""
    given = given_to(recorder, frame)
    plain = isinstance(given, (ast.Subscript, ast.Attribute)) and not _computes(given)
    return ast.unparse(given) if given is not None and plain else ""


def whole_text(recorder: Recorder, frame: FrameType) -> str:
    """The same of anything to which `.items()` can be put; empty for more than a line."""
    given = given_to(recorder, frame)
    ends = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Dict, ast.DictComp)
    text = ast.unparse(given) if isinstance(given, ends) else ""
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def _computes(expression: ast.expr) -> bool:
    return any(isinstance(node, (ast.Call, ast.Await, ast.NamedExpr)) for node in syntax.walk(expression))


def is_unread(recorder: Recorder, frame: FrameType) -> bool:
    """True if the load is a statement of its own, or gives its result to names that nothing reads."""
    file = recorder.places.file_of(frame)
    tree = file.tree if file is not None else None
    for node in syntax.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Expr, ast.Assign)) and node.lineno <= frame.f_lineno <= (node.end_lineno or 0):
            alone = isinstance(node.value, ast.Call) and _is_load(node.value)
            return alone and (isinstance(node, ast.Expr) or _are_unread(tree, node))
    return False


def _is_load(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"


def _are_unread(tree: ast.AST | None, statement: ast.Assign) -> bool:
    """True if all that an assignment names are names, and the text reads none of them, nor hands them to others."""
    targets = [one for whole in statement.targets for one in getattr(whole, "elts", [whole])]
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    if tree is None or not all(isinstance(one, ast.Name) for one in targets):
        return False
    return not any(_reads(one, names) for one in syntax.walk(tree))


def _reads(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "vars"):
        return True
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return not names.isdisjoint(node.names)
    return isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
