"""Functions made in a loop that read its variable when they are called, found in the text of a cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import LoopFunctionFact, syntax
from torch_inspector.observe.keeping import Keeping, Kept
from torch_inspector.observe.turns import AnyLoop, Function, Turn, parts_of_turn

_TEXT_LIMIT = 120


def loop_functions(tree: ast.Module, code: str, offset: int) -> tuple[LoopFunctionFact, ...]:
    """Functions made in a loop that read its variable late and are kept beyond their turn."""
    loops = [node for node in syntax.walk(tree) if isinstance(node, AnyLoop)]
    if not loops:
        return ()
    lines = code.splitlines()
    parents = {child: parent for parent in syntax.walk(tree) for child in syntax.children(parent)}
    found: dict[Function, LoopFunctionFact] = {}
    for loop in loops:
        for function, fact in _facts_of_loop(Turn(loop), parents, lines):
            found[function] = _merged(found[function], fact) if function in found else fact
    facts = (fact._replace(line=fact.line + offset) for fact in found.values())
    return tuple(dict.fromkeys(sorted(facts, key=lambda fact: fact.line)))


def _facts_of_loop(
    turn: Turn, parents: dict[ast.AST, ast.AST], lines: list[str]
) -> Iterator[tuple[Function, LoopFunctionFact]]:
    keeping = Keeping(turn, parents)
    for function in _functions(turn.loop):
        late = _late_names(turn, function)
        kept = keeping.of(function) if late else None
        if kept is not None:
            yield function, _fact(function, late, kept, lines)


def _fact(function: Function, late: dict[str, bool], kept: Kept, lines: list[str]) -> LoopFunctionFact:
    sure = {name for name, changes in late.items() if changes}
    return LoopFunctionFact(
        function.lineno,
        tuple(sorted(sure or late)),
        "lambda" if isinstance(function, ast.Lambda) else "function",
        kept.by,
        lines[function.lineno - 1].strip()[:_TEXT_LIMIT] if function.lineno <= len(lines) else "",
        sure=kept.sure and bool(sure),
        bound=_bound(function, tuple(sorted(sure or late))),
    )


def _bound(function: Function, names: tuple[str, ...]) -> str:
    """The function with the names as default arguments, `lambda x, f=f: f(x)`; the first line of a `def`."""
    given = function.args
    names = tuple(
        name for name in names if name not in {one.arg for one in syntax.walk(given) if isinstance(one, ast.arg)}
    )
    by_name = given.vararg is not None or bool(given.kwonlyargs)
    more = [ast.arg(name) for name in names]
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    arguments = ast.arguments(
        given.posonlyargs,
        [*given.args, *(() if by_name else more)],
        given.vararg,
        [*given.kwonlyargs, *(more if by_name else ())],
        [*given.kw_defaults, *(values if by_name else ())],
        given.kwarg,
        [*given.defaults, *(() if by_name else values)],
    )
    if isinstance(function, ast.Lambda):
        text = ast.unparse(ast.Lambda(arguments, function.body))
        return text if len(text) <= _TEXT_LIMIT else ""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{kind} {function.name}({ast.unparse(arguments)}){returns}:"


def _merged(one: LoopFunctionFact, other: LoopFunctionFact) -> LoopFunctionFact:
    """What two loops around one function say of it; what is sure wins."""
    if one.sure != other.sure:
        return one if one.sure else other
    return one._replace(names=tuple(sorted({*one.names, *other.names})))


def _functions(loop: ast.AST) -> Iterator[Function]:
    """Functions in a loop, as long as no other function lies between."""
    stack = parts_of_turn(loop)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif not isinstance(node, ast.ClassDef):
            stack.extend(syntax.children(node))


def _late_names(turn: Turn, function: Function) -> dict[str, bool]:
    """Names which the function reads from outside when it is called, and which then have another value."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    inside = [n for part in body for n in syntax.walk(part)]
    # Arguments of functions inside count as bound everywhere in it: better silent than wrong.
    own = {n.arg for n in (*syntax.walk(function.args), *inside) if isinstance(n, ast.arg)}
    own |= {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    read = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - own
    return {name: sure for name, sure in turn.late_names(function.lineno).items() if name in read}
