"""What the text of a cell says: calls, functions made in loops, where a variable got its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import CallFact, Cell, LoopFunctionFact, Trace

_TEXT_LIMIT = 120
_Function = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
# What a function can stand in without being kept or called by it.
_TRANSPARENT = (ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.Starred, ast.keyword)
_Loop = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# Calls that use the function during the call and keep nothing.
_USES_AT_ONCE = frozenset(
    (
        *("sorted", "sort", "min", "max", "map", "filter", "any", "all", "sum", "reduce", "next"),
        *("list", "tuple", "set", "dict", "apply", "apply_", "map_", "vmap", "grad"),
    )
)
# Methods that keep what they are given.
_KEEPS = frozenset(["append", "add", "insert", "extend", "appendleft", "setdefault", "update", "register", "submit"])


def parse(code: str) -> ast.Module | None:
    """The parsed code, or None where it is no Python."""
    try:
        return _parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=32)
def _parsed(code: str) -> ast.Module:
    return ast.parse(code)


def source_trace(cell: Cell) -> Trace:
    """All that the text of a cell says."""
    tree = parse(cell.code)
    if tree is None:
        return Trace()
    return Trace(
        loop_functions=loop_functions(tree, cell.code, cell.line_offset),
        calls=call_facts(tree, cell.line_offset),
    )


def dotted(node: ast.AST) -> str:
    """`torch.nn.Linear` for the expression that says so; empty for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


def call_facts(tree: ast.Module, offset: int) -> tuple[CallFact, ...]:
    """Every call with a plain dotted name, by line."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = ((dotted(call.func), call.lineno + offset) for call in calls)
    return tuple(sorted((CallFact(name, line) for name, line in named if name), key=lambda call: call.line))


def assignment_line(tree: ast.AST, name: str, before: int) -> int | None:
    """The last line up to `before` that gives a variable its value, in the innermost function around `before`."""
    scope = _scope_at(tree, before)
    lines = [node.lineno for node in _own_nodes(scope) if _assigns(node, name) and node.lineno <= before]
    return max(lines, default=None)


def _scope_at(tree: ast.AST, line: int) -> ast.AST:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [n for n in functions if n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(around, key=lambda n: n.lineno, default=tree)


def _own_nodes(scope: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a scope without those of functions inside it."""
    stack: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


def _assigns(node: ast.stmt, name: str) -> bool:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    return any(isinstance(n, ast.Name) and n.id == name for target in targets for n in ast.walk(target))


def growth_line(tree: ast.AST, path: str) -> int | None:
    """The last line that appends to a container, assigns into it, or adds to a variable."""
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Call) and _grows(node, path)]
    return max(lines, default=None)


def _grows(node: ast.AST, path: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return _unparse(node.target) == path
    if isinstance(node, ast.Assign):
        return any(
            _unparse(t) == path or (isinstance(t, ast.Subscript) and _unparse(t.value) == path) for t in node.targets
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
        return _unparse(node.func.value) == path
    return False


def _unparse(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""


def subtracted_names(tree: ast.AST, line: int) -> frozenset[str]:
    """Plain names on either side of a minus in the function (or cell) around a line."""
    names: set[str] = set()
    for node in ast.walk(_scope_at(tree, line)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            names.update(n.id for n in (node.left, node.right) if isinstance(n, ast.Name))
    return frozenset(names)


def names_on_line(tree: ast.AST, line: int) -> tuple[str, ...]:
    """Dotted names that the statement around a line reads, longest first: `self.grid`, `self.scale`, `x`."""
    statements = [
        n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    if not statements:
        return ()
    innermost = max(statements, key=lambda n: n.lineno)
    parts = [n for n in ast.walk(innermost) if hasattr(n, "lineno")]
    names = {dotted(n) for n in parts if isinstance(n, ast.Attribute | ast.Name)} - {""}
    return tuple(sorted(names, key=lambda name: (-name.count("."), name)))


def repeats_input(tree: ast.AST, line: int) -> bool:
    """True if a call on this line sits in a loop that binds none of the names which the call is given.

    `[net(x) for _ in range(50)]` samples the same input; `[net(x) for x in batches]` does not.
    """
    for loop in (n for n in ast.walk(tree) if isinstance(n, _Loop)):
        if not loop.lineno <= line <= (loop.end_lineno or loop.lineno):
            continue
        bound = _bound_in(loop)
        calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call) and n.lineno == line and n.args]
        given = [
            {m.id for a in c.args for m in ast.walk(a) if isinstance(m, ast.Name)} for c in calls if not _makes_new(c)
        ]
        if any(names and not names & bound for names in given):
            return True
    return False


def _makes_new(call: ast.Call) -> bool:
    """True if an argument is itself the result of a call: `net(torch.randn(5, 3))` is given something new each time."""
    return any(isinstance(n, ast.Call) for argument in call.args for n in ast.walk(argument))


def _bound_in(loop: ast.AST) -> set[str]:
    stored = (n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in stored}


def loop_functions(tree: ast.Module, code: str, offset: int) -> tuple[LoopFunctionFact, ...]:
    """Functions made in a loop that read its variable late and are kept beyond their turn."""
    lines = code.splitlines()
    facts = [
        LoopFunctionFact(
            function.lineno + offset,
            tuple(sorted(late)),
            "lambda" if isinstance(function, ast.Lambda) else "function",
            kept,
            lines[function.lineno - 1].strip()[:_TEXT_LIMIT] if function.lineno <= len(lines) else "",
        )
        for loop, function in _functions_in_loops(tree)
        if (late := _late_names(loop, function)) and (kept := _kept_by(loop, function))
    ]
    return tuple(dict.fromkeys(sorted(facts, key=lambda fact: fact.line)))


def _functions_in_loops(tree: ast.AST) -> Iterator[tuple[ast.AST, _Function]]:
    """Each function with each loop around it, as long as no other function lies between."""
    for loop in (n for n in ast.walk(tree) if isinstance(n, _Loop)):
        stack: list[ast.AST] = _bodies(loop)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
                yield loop, node
            elif not isinstance(node, ast.ClassDef):
                stack.extend(ast.iter_child_nodes(node))


def _bodies(loop: ast.AST) -> list[ast.AST]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return list(loop.body)
    if isinstance(loop, ast.DictComp):
        return [loop.key, loop.value]
    return [loop.elt] if isinstance(loop, ast.ListComp | ast.SetComp | ast.GeneratorExp) else []


def _targets(loop: ast.AST) -> set[str]:
    """Names that change with each turn of the loop: its own targets."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        parts: list[ast.expr] = [loop.target]
    else:
        parts = [generator.target for generator in getattr(loop, "generators", ())]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _late_names(loop: ast.AST, function: _Function) -> set[str]:
    """Loop variables which the function reads from outside when it is called."""
    arguments = function.args
    own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    own |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    names = [n for part in body for n in ast.walk(part) if isinstance(n, ast.Name)]
    own |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} & _targets(loop) - own


def _kept_by(loop: ast.AST, function: _Function) -> str:
    """How the function outlives its turn; empty if it is used at once or that cannot be told."""
    parents = {child: parent for parent in ast.walk(loop) for child in ast.iter_child_nodes(parent)}
    if not isinstance(function, ast.Lambda):
        return _kept_name(loop, function.name)
    node: ast.AST = function
    while node in parents:
        parent = parents[node]
        if not isinstance(parent, _TRANSPARENT) or parent is loop:
            return _kept_in(loop, node, parent)
        node = parent
    return ""


def _kept_in(loop: ast.AST, node: ast.AST, parent: ast.AST) -> str:
    """How what surrounds a function keeps it."""
    if isinstance(parent, ast.Call):
        return _kept_by_call(loop, parent) if node is not parent.func else ""
    if isinstance(parent, ast.Assign):
        return _kept_by_assignment(loop, parent)
    return _kept_by_comprehension(loop) if parent is loop else ""


def _kept_by_call(loop: ast.AST, call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    if name in _USES_AT_ONCE or not isinstance(call.func, ast.Attribute):
        return ""
    if _leaves(loop, call) or _made_in_body(loop, call.func.value):
        return ""
    if name.startswith("register_"):
        return "" if _removes(loop) else name
    return name if name in _KEEPS else ""


def _made_in_body(loop: ast.AST, receiver: ast.expr) -> bool:
    """True if the keeper itself is made anew in each turn, so that nothing is kept beyond it."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    while isinstance(receiver, ast.Attribute | ast.Subscript):
        receiver = receiver.value
    return isinstance(receiver, ast.Name) and receiver.id in _bound_in(loop) - _targets(loop)


def _removes(loop: ast.AST) -> bool:
    """True if the loop takes hooks away again in the same turn."""
    calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "remove" for call in calls)


def _leaves(loop: ast.AST, node: ast.AST) -> bool:
    """True if the loop ends in the very turn that makes the function (`break` or `return` at its level)."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    return any(isinstance(s, ast.Break | ast.Return) and s.lineno >= getattr(node, "lineno", 0) for s in loop.body)


def _kept_by_assignment(loop: ast.AST, assignment: ast.Assign) -> str:
    held = [t for t in assignment.targets if isinstance(t, ast.Subscript | ast.Attribute)]
    if held:
        return "" if any(_made_in_body(loop, target) for target in held) else "assignment"
    name = next((t.id for t in assignment.targets if isinstance(t, ast.Name)), "")
    return _kept_name(loop, name)


def _kept_by_comprehension(loop: ast.AST) -> str:
    return "" if isinstance(loop, ast.For | ast.AsyncFor | ast.GeneratorExp) else "comprehension"


def _to_names_only(assignment: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) for target in assignment.targets)


def _kept_name(loop: ast.AST, name: str) -> str:
    """How a function with a name outlives the turn: it is handed on by name within the loop."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and any(isinstance(a, ast.Name) and a.id == name for a in node.args):
            kept = _kept_by_call(loop, node)
            if kept:
                return kept
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            return _kept_by_assignment(loop, node) if not _to_names_only(node) else ""
    return ""
