"""A tensor that each turn of a loop makes anew, one piece longer: `all = torch.cat([all, piece])`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.lengths import counted, turns_of
from torch_inspector.observe.operands import at
from torch_inspector.observe.shapes import is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import loops_in, plain_stores, stores_in

_JOINS = frozenset(["cat", "concat", "concatenate", "vstack", "hstack", "row_stack"])
_VIEWS = frozenset(["view", "reshape"])
_MAKERS = frozenset(["empty", "zeros", "ones", "rand", "randn", "tensor", "Tensor", "FloatTensor", "LongTensor"])
_COPIERS = frozenset(["tensor", "Tensor", "FloatTensor", "LongTensor"])
_nbytes_of: Any = torch.Tensor.nbytes.__get__  # type: ignore[attr-defined]
# What may be asked of the growing tensor in the loop without needing it whole.
_ASKED = frozenset(["shape", "size", "device", "dtype", "ndim", "numel"])


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
    for whole in (*node.body, *within):
        one, begins = _joining(whole, node)
        if one is None or not (name := _grows(one)) or _is_needed(parts, one, name, begins):
            continue
        if count := turns_of(scope, node, source):
            nbytes = _nbytes_at_end(scope, node, name)
            empty = bool(begins) or _begins_empty(scope, node, name)
            yield scope.fact(
                "growing",
                one,
                whole,
                names=(name,),
                shapes=((count,),),
                nbytes=nbytes,
                detail=_as_list(one, name, empty=empty, into=_list_for(name)),
            )


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
        if owner and (count := turns_of(caller, loop, loop.iter)):
            path = f"{owner}.{name.removeprefix('self.')}"
            nbytes = 0 if caller.function else _nbytes(at(scope.reading.names, path))
            said = _as_list(node, name, empty=True, into=name)
            yield scope.fact("growing", node, statement, names=(name,), shapes=((count,),), nbytes=nbytes, detail=said)


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


def _joining(whole: ast.stmt, loop: ast.For | ast.While) -> tuple[ast.Assign | None, list[ast.AST]]:
    """The statement that joins, and what else names its target where the first turn takes the piece as it is.

    `all = e if all is None else torch.cat((all, e))`, and the same as a statement with `else`.
    """
    if isinstance(whole, ast.If) and len(whole.body) == len(whole.orelse) == 1:
        sides = [one for one in (*whole.body, *whole.orelse) if isinstance(one, ast.Assign) and len(one.targets) == 1]
        if len(sides) == 2 and ast.unparse(sides[0].targets[0]) == ast.unparse(sides[1].targets[0]):  # noqa: PLR2004
            return _first_as_it_is(loop, whole.test, [one.value for one in sides], sides)
    if not isinstance(whole, ast.Assign):
        return None, []
    if isinstance(whole.value, ast.IfExp) and len(whole.targets) == 1:
        value = whole.value
        return _first_as_it_is(loop, value.test, [value.body, value.orelse], [whole])
    return whole, []


def _first_as_it_is(
    loop: ast.For | ast.While, test: ast.expr, values: list[ast.expr], sides: Sequence[ast.Assign]
) -> tuple[ast.Assign | None, list[ast.AST]]:
    """The join of two values of which the other is the piece itself, for the first turn; None for any other pair."""
    target = sides[0].targets[0]
    for i, value in enumerate(values):
        joined = ast.copy_location(ast.Assign([target], value), value)
        name = _grows(joined)
        if name and _pieces(joined, name) == [ast.unparse(values[1 - i])] and _is_first(loop, test, name):
            is_none = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
            own = syntax.walk(test) if is_none else ()
            return joined, [*own, *(one for side in sides for one in syntax.walk(side.targets[0]))]
    return None, []


def _is_first(loop: ast.For | ast.While, test: ast.expr, name: str) -> bool:
    """True for a test that tells the first turn from the others: `all is None`, `len(all) == 0`, `i == 0`, `not i`."""
    test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    left = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else test
    if any(_place(one) == name for one in syntax.walk(left) if isinstance(one, ast.expr)):
        return True
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or not isinstance(left, ast.Name):
        return False
    counter = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    counts = dotted(loop.iter.func) in ("range", "trange", "enumerate") and dotted(counter) == left.id
    bound = test.comparators[0] if isinstance(test, ast.Compare) else ast.Constant(0)
    return counts and isinstance(bound, ast.Constant) and bound.value == 0


def _grows(statement: ast.Assign) -> str:
    """The name that is given itself with something joined to it; empty for any other statement."""
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], (ast.List, ast.Tuple)):
        return ""
    name, joins = _place(target), dotted(call.func).split(".")
    if len(statement.targets) != 1 or not name or joins[0] != "torch" or joins[-1] not in _JOINS:
        return ""
    own = [_owner(one) == name for one in call.args[0].elts]
    # The first or the last: what grows on both sides is no list of parts.
    return name if sum(own) == 1 and len(own) > 1 and (own[0] or own[-1]) else ""


def _place(node: ast.expr) -> str:
    """`kept`, `self.kept`, `bank['kept']`; empty for anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return ast.unparse(node) if dotted(node.value) else ""
    return dotted(node)


def _owner(node: ast.expr) -> str:
    """The same, also of `kept.reshape(-1, 64)`."""
    viewed = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
    return _place(node.func.value if viewed else node)  # type: ignore[attr-defined]


def _pieces(statement: ast.Assign, name: str) -> list[str]:
    """What is joined to it, as written."""
    call: Any = statement.value
    return [ast.unparse(one) for one in call.args[0].elts if _owner(one) != name]


def _list_for(name: str) -> str:
    """`scores_parts` for `scores` and for `self.scores`: two tensors that grow in one loop need a list each."""
    words = re.findall(r"[A-Za-z_]\w*", name)
    return f"{words[-1]}_parts" if words else "parts"


def _as_list(statement: ast.Assign, name: str, *, empty: bool, into: str) -> str:
    """What collects the pieces instead, in three lines: before the loop, in it, after it."""
    call: Any = statement.value
    pieces, last = _pieces(statement, name), _owner(call.args[0].elts[-1]) == name
    adds = f"append({pieces[0]})" if len(pieces) == 1 else f"extend([{', '.join(pieces[::-1] if last else pieces)}])"
    parts = ast.Name(f"{into}[::-1]" if last else into)
    joined = ast.unparse(ast.Call(call.func, [parts, *call.args[1:]], call.keywords))
    # Of an attribute that becomes a list, what reads it needs another name: the list goes on growing.
    whole = name.partition("[")[0].rpartition(".")[2] if into == name else name
    return f"{into} = [{'' if empty else name}]\n{into}.{adds}\n{whole} = {joined}"


def _begins_empty(scope: Scope, loop: ast.For | ast.While, name: str) -> bool:
    """True if the last statement before the loop that gives the name a value gives it nothing: `torch.empty(0)`."""
    lines = [line for line in stores_in(scope.node).get(name, ()) if line < loop.lineno]
    given = plain_stores(scope.node).get((name, max(lines))) if lines else None
    value = given.value if given is not None else None
    if not isinstance(value, ast.Call):
        return False
    maker = value.func.attr if isinstance(value.func, ast.Attribute) else dotted(value.func)
    sizes = [one for arg in value.args for one in getattr(arg, "elts", None) or [arg]]
    none = any((isinstance(one, ast.Constant) and one.value == 0) or _is_nothing(one) for one in sizes)
    return maker in _MAKERS and (none if maker not in _COPIERS else not sizes or all(map(_is_nothing, sizes)))


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple)) and not node.elts


def _is_needed(parts: list[ast.AST], statement: ast.Assign, name: str, begins: Sequence[ast.AST] = ()) -> bool:
    """True if the loop reads what has been joined so far, or gives the name another value as well."""
    call: Any = statement.value
    joined = [one for one in call.args[0].elts if _owner(one) == name]
    own = {id(one) for whole in (*statement.targets, *joined) for one in syntax.walk(whole)} | set(map(id, begins))
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
