"""A divisor kept from 0 in the words of what it is: `m.sum().clamp_min(1)`, `max(n, 1)`, `np.maximum(sd, 1e-08)`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import OperationFact

TENSOR, NUMBER, ARRAY = "tensor", "number", "array"
_NUMPY = ("np", "numpy")
_TABLES = ("pd", "pandas", *_NUMPY)
_COUNTS = frozenset(["len", "int", "float", "ord", "time", "perf_counter"])
# Of what these make of numbers, as of `max(n, 1)`, and of the numbers of a list.
_OF_NUMBERS = frozenset(["sum", "max", "min", "abs", "round", "pow"])
# Methods and fields of tensors that give plain numbers, or lists of them.
_PLAIN = frozenset(["item", "size", "dim", "numel", "ndimension", "tolist", "shape", "ndim", "count", "index"])
_TO_ARRAY = frozenset(["numpy", "values", "to_numpy"])
# What only tensors and arrays have.
_ADDED_UP = frozenset(["sum", "mean", "std", "var", "norm", "abs", "square", "amax", "max", "prod", "count_nonzero"])
_DEEP = 6


def floored(run: Run, node: ast.expr, least: str, operation: OperationFact | None = None) -> str:
    """A divisor with a lower bound; empty if it is not known what can set one.

    Args:
        run: The run, with those before it.
        node: The divisor.
        least: The bound.
        operation: The division as it was seen, which tells a tensor by its type of numbers.
    """
    text = ast.unparse(node)
    kind = TENSOR if operation is not None and not operation.plain else kind_of(run, node)
    if kind == ARRAY:
        space = next((one for one in _NUMPY if _says(run, one)), "")
        return f"{space}.maximum({text}, {least})" if space else ""
    if kind == NUMBER or (not kind and operation is not None):  # a tensor of one number is compared as well
        return f"max({text}, {least})"
    if not kind and any(_says(run, one) for one in _TABLES):
        return ""
    bare = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return f"{text if bare else f'({text})'}.clamp_min({least})"


class _Look(NamedTuple):
    """What is known of variables, each as many names away from the expression as the number says."""

    known: dict[tuple[str, int], str]
    depth: int = 0


def kind_of(run: Run, node: ast.AST, look: _Look | None = None) -> str:
    """What an expression gives, as far as the variables and the texts so far tell; else empty."""
    look = look or _Look({})
    if isinstance(node, ast.Constant):
        return NUMBER if type(node.value) in (int, float) else ""
    if any(one.path == ast.unparse(node) for one in run.after.tensors):
        return TENSOR
    if isinstance(node, ast.Name):
        return _of_name(run, node.id, look)
    if isinstance(node, (ast.UnaryOp, ast.BinOp)):
        sides = [kind_of(run, one, look) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return next((one for one in (TENSOR, ARRAY) if one in sides), NUMBER if set(sides) == {NUMBER} else "")
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        plain = isinstance(node, ast.Attribute) and node.attr in _PLAIN
        return NUMBER if plain else _of_owner(run, node.value, getattr(node, "attr", ""), look)
    return _of_call(run, node, look) if isinstance(node, ast.Call) else ""


def _of_call(run: Run, call: ast.Call, look: _Look) -> str:
    name = syntax.last_part(call.func)
    if isinstance(call.func, ast.Attribute):
        return NUMBER if name in _PLAIN else _of_owner(run, call.func.value, name, look)
    if name in _OF_NUMBERS and call.args:
        return kind_of(run, call.args[0], look)
    return NUMBER if name in _COUNTS else ""


def _of_owner(run: Run, owner: ast.expr, name: str, look: _Look) -> str:
    """What a method, a field or a part of something is: as a rule what that is itself."""
    root = owner.id if isinstance(owner, ast.Name) else ""
    if root == "math":
        return NUMBER
    if root in _NUMPY or name in _TO_ARRAY:
        return ARRAY
    if root in ("torch", "F"):
        return TENSOR
    kind = kind_of(run, owner, look)
    strange = any(_says(run, one) for one in _TABLES)
    return TENSOR if not kind and name in _ADDED_UP and not strange else kind


def _of_name(run: Run, name: str, look: _Look) -> str:
    """What the texts give a variable, if all that they give it is of one kind; an argument may be anything."""
    key = (name, look.depth)
    if key not in look.known:
        look.known[key] = _of_texts(run, name, look._replace(depth=look.depth + 1)) if look.depth < _DEEP else ""
    return look.known[key]


def _of_texts(run: Run, name: str, deeper: _Look) -> str:
    sources = dict.fromkeys(past.cell.source for past in (*run.earlier, run))
    trees = [tree for source in sources if (tree := syntax.parse(source)) is not None]
    if any(isinstance(one, ast.arg) and one.arg == name for tree in trees for one in syntax.walk(tree)):
        return ""
    values = [value for tree in trees for value in _given(tree, name)]
    kinds = {kind_of(run, value, deeper) if value is not None else "" for value in values}
    return kinds.pop() if len(kinds) == 1 else ""


def _given(tree: ast.AST, name: str) -> list[ast.expr | None]:
    """The values that a text gives a name, None for those that it does not tell."""
    found: list[ast.expr | None] = []
    told: set[int] = set()
    for node in syntax.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in syntax.targets_of(node):
                if isinstance(target, ast.Name) and target.id == name:
                    found.append(node.value)
                    told.add(id(target))
    others = (one for one in syntax.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return [*found, *(None for one in others if one.id == name and id(one) not in told)]


def is_constant(run: Run, node: ast.expr) -> bool:
    """True for a variable that the texts give plain numbers apart from 0 only, so that it is not to blame."""
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.source)) is not None]
    if not isinstance(node, ast.Name) or any(
        map(_is_counted(node.id), (one for tree in trees for one in syntax.walk(tree)))
    ):
        return False
    values = [value for tree in trees for value in _given(tree, node.id)]
    numbers = [getattr(one, "value", None) for one in values]
    return bool(values) and all(type(one) in (int, float) and one != 0 for one in numbers)


def _is_counted(name: str) -> Callable[[ast.AST], bool]:
    """True for what changes a number, or lets it be anything: `n -= 1`, an argument."""

    def changes(node: ast.AST) -> bool:
        changed = isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name
        return changed or (isinstance(node, ast.arg) and node.arg == name)

    return changes


def _says(run: Run, name: str) -> bool:
    """True if a text uses a module by that name."""
    return any(re.search(rf"\b{name}\b", past.cell.source) for past in (*run.earlier, run))
