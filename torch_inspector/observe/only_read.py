"""Whether a variable is only read: nothing writes into its values, hands them on or gives them a second name."""

from __future__ import annotations

import ast
from types import ModuleType

from torch_inspector.facts import syntax
from torch_inspector.observe.bindings import bindings, parameters_of
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_a, module_of
from torch_inspector.observe.untested import parents_of, position

# What makes something new of a tensor, or tells something of it.
_READS = frozenset(
    ["argmax", "argmin", "argsort", "cross_entropy", "device", "dim", "dtype", "entropy", "item", "log", "max", "mean",
     "median", "min", "multinomial", "ndim", "nll_loss", "numel", "shape", "size", "sort", "std", "sum", "tolist",
     "topk", "var", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "round", "gt", "lt", "ge"]
)  # fmt: skip
_SHOWS = frozenset(["print", "display", "float", "len", "str", "repr"])
_FRESH = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue)


def is_only_read(scope: Scope, name: str, by: ast.AST, since: tuple[int, int]) -> bool:
    """True if a scope does nothing else with a variable before a call is given it.

    Args:
        scope: The scope.
        name: The variable.
        by: The call.
        since: Where the variable was given its value; in a loop later than that, all of the scope counts.
    """
    loops = [parent for _, parent in parents_of(scope.node, by) if isinstance(parent, syntax.LOOPS)]
    again = any(position(one) > since for one in loops)
    for node in syntax.own_expressions(scope.node):
        if isinstance(node, syntax.INNER) and _uses(node, name):
            return False
        used = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        if used and (again or since < position(node) < position(by)) and not _is_harmless(scope, node):
            return False
    return True


def _uses(inner: ast.AST, name: str) -> bool:
    """True if a function in the scope has the very variable in it."""
    own = name in parameters_of(inner) or bindings(inner, name)
    return not own and any(isinstance(one, ast.Name) and one.id == name for one in syntax.walk(inner))


def _is_harmless(scope: Scope, node: ast.AST) -> bool:
    for child, parent in parents_of(scope.node, node):
        passes = _passes_on(child, parent)
        if not passes:
            return _makes_new(child, parent) or (isinstance(parent, ast.Call) and _only_looks(scope, parent))
    return False


def _passes_on(child: ast.AST, parent: ast.AST) -> bool:
    """True for what may be a view of the variable: `p[0]`, `p.T`, `p.detach()`; and for an argument by its name."""
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _READS and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Subscript):
        return child is parent.value and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.keyword):
        return parent.arg not in ("out", None)
    return isinstance(parent, ast.Call) and child is parent.func


def _makes_new(child: ast.AST, parent: ast.AST) -> bool:
    """True for what leaves the variable as it is: sums and the like, its use as an index, its display."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READS
    if isinstance(parent, ast.Subscript):
        return child is parent.slice
    if isinstance(parent, ast.Expr):
        return not isinstance(child, ast.Call)
    return isinstance(parent, _FRESH) or (isinstance(parent, ast.AugAssign) and child is parent.value)


def _only_looks(scope: Scope, call: ast.Call) -> bool:
    """True for a call that writes into nothing that it is given: `print`, a loss, `torch.argmax`."""
    if isinstance(call.func, ast.Name) and call.func.id in _SHOWS:
        return True
    value = scope.names.value(call.func.func if isinstance(call.func, ast.Call) else call.func)
    if module_of(value if is_a(value, type) else type(value)) == "torch.nn.modules.loss":
        return True
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    of_torch = owner is not None and type(scope.names.value(owner)) is ModuleType
    return isinstance(call.func, ast.Attribute) and of_torch and call.func.attr in _READS
