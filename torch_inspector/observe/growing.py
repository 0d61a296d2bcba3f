"""A tensor that each turn of a loop makes anew, one piece longer: `all = torch.cat([all, piece])`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.lengths import counted, loop_length
from torch_inspector.observe.operands import at
from torch_inspector.observe.shapes import is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import loops_in, stores_in

_JOINS = frozenset(["cat", "concat", "concatenate", "vstack", "hstack", "row_stack"])
_nbytes_of: Any = torch.Tensor.nbytes.__get__  # type: ignore[attr-defined]
# What may be asked of the growing tensor in the loop without needing it whole.
_ASKED = frozenset(["shape", "size", "device", "dtype", "ndim"])


def growing(scope: Scope, node: ast.AST, _: ast.stmt) -> Iterator[ExpressionFact]:
    """A loop in which nothing but the joining itself needs the joined tensor, with turns and bytes at the end."""
    if not isinstance(node, (ast.For, ast.While)):
        return
    source = node.iter if isinstance(node, ast.For) else counted(scope, node)
    if source is None:
        return
    parts = list(syntax.own_expressions(node))
    if any(isinstance(one, (ast.Break, ast.Continue, ast.Return)) for one in parts):
        return
    # Statements that each turn comes to.
    within = [inner for one in node.body if isinstance(one, ast.With) for inner in one.body]
    for one in (*node.body, *within):
        if not isinstance(one, ast.Assign) or not (name := _grows(one)) or _is_needed(parts, one, name):
            continue
        if count := loop_length(scope, source):
            names, nbytes = (name, *_pieces(one, name)), _nbytes_at_end(scope, node, name)
            yield scope.fact("growing", one, one, names=names, shapes=((count,),), nbytes=nbytes, detail=_once(one))


def grown_by_calls(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """The same in a method that a loop calls: `self.kept = torch.cat([self.kept, x])`."""
    function, caller = scope.node, scope.caller
    if not isinstance(node, ast.Assign) or not isinstance(function, ast.FunctionDef) or caller is None:
        return
    name = _grows(node) if node in function.body else ""
    parts = list(syntax.own_expressions(function))
    if not name.startswith("self.") or _is_needed(parts, node, name) or _may_end(parts, node):
        return
    for loop in loops_in(caller.node):
        owner = _only_call(loop, function.name)
        if owner and (count := loop_length(caller, loop.iter)):
            path = f"{owner}.{name.removeprefix('self.')}"
            nbytes = 0 if caller.function else _nbytes(at(scope.reading.names, path))
            names = (name, *_pieces(node, name))
            yield scope.fact(
                "growing", node, statement, names=names, shapes=((count,),), nbytes=nbytes, detail=_once(node)
            )


def _may_end(parts: list[ast.AST], statement: ast.stmt) -> bool:
    """True if the method may return before the statement, or reads itself in a way that is not seen."""
    ends = (one for one in parts if isinstance(one, (ast.Return, ast.Raise)))
    own = {id(one.value) for one in parts if isinstance(one, ast.Attribute)}
    asks = any(isinstance(one, ast.Call) and dotted(one.func).startswith("self.") for one in parts)
    given = any(isinstance(one, ast.Name) and one.id == "self" and id(one) not in own for one in parts)
    return asks or given or any(one.lineno < statement.lineno for one in ends)


def _only_call(loop: ast.For, method: str) -> str:
    """The object of which each turn calls a method once, and does nothing else with it; empty if there is none."""
    parts = list(syntax.own_expressions(loop))
    simple = [one for one in loop.body if isinstance(one, (ast.Expr, ast.Assign))]
    calls = [one for statement in simple for one in syntax.walk(statement) if isinstance(one, ast.Call)]
    owners = [
        dotted(one.func.value) for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == method
    ]
    if len(owners) != 1 or any(isinstance(one, (ast.Break, ast.Continue, ast.Return)) for one in parts):
        return ""
    read = [one for one in parts if isinstance(one, ast.Name) and one.id == owners[0].partition(".")[0]]
    return owners[0] if len(read) == 1 else ""


def _grows(statement: ast.Assign) -> str:
    """The name that is given itself with something joined to it; empty for any other statement."""
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], (ast.List, ast.Tuple)):
        return ""
    name, joins = _place(target), dotted(call.func).split(".")
    if len(statement.targets) != 1 or not name or joins[0] != "torch" or joins[-1] not in _JOINS:
        return ""
    return name if sum(_place(one) == name for one in call.args[0].elts) == 1 and len(call.args[0].elts) > 1 else ""


def _place(node: ast.expr) -> str:
    """`kept`, `self.kept`, `bank['kept']`; empty for anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return ast.unparse(node) if dotted(node.value) else ""
    return dotted(node)


def _pieces(statement: ast.Assign, name: str) -> list[str]:
    """What is joined to it, as written."""
    call: Any = statement.value
    return [ast.unparse(one) for one in call.args[0].elts if _place(one) != name]


def _once(statement: ast.Assign) -> str:
    """The same call on a list of all pieces: `torch.cat(parts, dim=1)`."""
    call: Any = statement.value
    return ast.unparse(ast.Call(call.func, [ast.Name("parts"), *call.args[1:]], call.keywords))


def _is_needed(parts: list[ast.AST], statement: ast.Assign, name: str) -> bool:
    """True if the loop reads what has been joined so far, or gives the name another value as well."""
    call: Any = statement.value
    joined = [one for one in call.args[0].elts if _place(one) == name]
    own = {id(one) for whole in (*statement.targets, *joined) for one in syntax.walk(whole)}
    asked = {id(one.value) for one in parts if isinstance(one, ast.Attribute) and one.attr in _ASKED}
    asked |= {
        id(a) for one in parts if isinstance(one, ast.Call) and dotted(one.func) in ("len", "print") for a in one.args
    }
    # Of a dictionary only this entry is known: whoever gets all of it may need that one.
    entries = {id(one.value) for one in parts if isinstance(one, ast.Subscript) and _place(one)}
    whole = name.partition("[")[0] if name.endswith("]") else name
    return any(
        (_place(one) == name or (dotted(one) == whole and id(one) not in entries))
        and id(one) not in own
        and id(one) not in asked
        for one in parts
        if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))
    )


def _nbytes_at_end(scope: Scope, loop: ast.For | ast.While, name: str) -> int:
    """Bytes of what has been joined; 0 if it is gone, or was given another value after the loop."""
    first = name.partition("[")[0].partition(".")[0]
    late = any(line > (loop.end_lineno or 0) for line in stores_in(scope.node).get(first, ()))
    value = None if scope.function or late else at(scope.reading.names, name)
    return _nbytes(value)


def _nbytes(value: Any) -> int:
    try:
        return int(_nbytes_of(value)) if is_tensor(value) else 0
    except Exception:  # noqa: BLE001  (layouts without a size in bytes)
        return 0
