"""A statement that keeps a state dict, as it reads where it keeps a copy."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# A longer line is no help as a correction.
_LONGEST = 110
# Entries of a dictionary that are written one a line.
_ENTRIES = 8
# What copies the dictionary and not the tensors: a deep copy takes its place.
_SHALLOW = ("copy", "dict", "OrderedDict")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_MODULE = re.compile(r"^\s*import\s+(?:[\w., ]+,\s*)?copy\s*(?:,|$|#|;)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*from\s+copy\s+import\s+\(?\s*(?:\w+\s*,\s*)*deepcopy\b(?!\s+as\b)", re.MULTILINE)
# Where `copy` is something else, an import of the module would take it away.
_OTHER = re.compile(
    r"^\s*from\s+copy\s+import\s+\(?\s*(?:\w+\s*,\s*)*copy\b(?!\s+as\b)|^(?:async\s+)?(?:def|class)\s+copy\b|^copy\s*=(?!=)",
    re.MULTILINE,
)


def with_copy(run: Run, place: Place) -> str:
    """The statement of a line with a deep copy of each `state_dict()`, after the import where it is missing.

    Empty where the line has no such statement, or one that is too long.
    """
    text = _statement(run, place)
    fresh = ast.parse(f"def f():\n    {text}").body[0].body[0] if text else None  # type: ignore[attr-defined]
    copied = _written(_Copying(copier(run)[0]).visit(fresh)) if fresh is not None else ""
    fits = copied not in ("", text) and max(map(len, copied.splitlines())) <= _LONGEST
    return f"{copier(run)[1]}{copied}" if fits else ""


def others_beside(run: Run, place: Place, model: str) -> tuple[str, ...]:
    """What else has its `state_dict()` kept by the statement of a line, without a copy."""
    tree = syntax.parse(_statement(run, place))
    calls = [node for node in syntax.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    inner = {id(one) for call in calls if _name(call) in ("deepcopy", "save") for one in syntax.walk(call)}
    states = [
        one.func.value
        for one in calls
        if id(one) not in inner and isinstance(one.func, ast.Attribute) and _name(one) == "state_dict"
    ]
    return tuple(dict.fromkeys(name for one in states if (name := ast.unparse(one)) != model))


def _statement(run: Run, place: Place) -> str:
    """The innermost simple statement of a line; empty if there is none."""
    tree = syntax.parse(run.source_of(place.cell))
    nodes = syntax.walk(tree) if tree is not None and place.line is not None else ()
    found = [node for node in nodes if isinstance(node, _SIMPLE) and syntax.spans(node, place.line or 0)]
    return ast.unparse(found[-1]) if found else ""


def _written(statement: ast.stmt) -> str:
    """The text, with an entry a line where a dictionary would be too long for one."""
    text, value = ast.unparse(statement), getattr(statement, "value", None)
    plain = isinstance(value, ast.Dict) and isinstance(statement, ast.Assign) and None not in value.keys
    if len(text) <= _LONGEST or not plain or len(value.values) > _ENTRIES:  # type: ignore[union-attr]
        return text
    pairs = zip(value.keys, value.values, strict=True)  # type: ignore[union-attr]
    entries = "".join(f"    {ast.unparse(key)}: {ast.unparse(one)},\n" for key, one in pairs if key is not None)
    return f"{' = '.join(map(ast.unparse, statement.targets))} = {{\n{entries}}}"  # type: ignore[attr-defined]


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def copier(run: Run) -> tuple[str, str]:
    """What the cells call the function that copies, and the import that comes before it; empty if it is there."""
    sources = [one.cell.source for one in (run, *run.earlier)]
    taken = any(map(_OTHER.search, sources))
    if any(map(_MODULE.search, sources)) and not taken:
        return "copy.deepcopy", ""
    if any(map(_FUNCTION.search, sources)):
        return "deepcopy", ""
    if taken:
        return "deepcopy", "from copy import deepcopy\n"
    return "copy.deepcopy", "import copy\n"


def _state_in(node: ast.Call) -> ast.Call | None:
    """`model.state_dict()` of `model.state_dict().copy()` and of `dict(model.state_dict())`."""
    of_state = [node.func.value] if isinstance(node.func, ast.Attribute) and not node.args else node.args
    inner = of_state[0] if len(of_state) == 1 and not node.keywords else None
    named = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "state_dict"
    return inner if named and isinstance(inner, ast.Call) else None


class _Copying(ast.NodeTransformer):
    """Puts a deep copy around each `x.state_dict()` that has none."""

    def __init__(self, function: str) -> None:
        self._function = ast.parse(function, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The call in a copy; what is copied already stays as it is."""
        name = _name(node)
        if name == "deepcopy":
            return node
        if name in _SHALLOW and (state := _state_in(node)) is not None:
            return ast.Call(self._function, [state], [])
        inner = self.generic_visit(node)
        return ast.Call(self._function, [node], []) if name == "state_dict" else inner
