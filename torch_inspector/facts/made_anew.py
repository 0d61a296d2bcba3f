"""An expression that gives out one object several times, written so that it makes a new one each time."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.modules import RepeatedFact
    from torch_inspector.facts.run import Run


def made_anew(run: Run, fact: RepeatedFact) -> str:
    """`[Block(8) for _ in range(depth)]` for `[block] * depth`; empty for ways to repeat that are not known."""
    node = syntax.expression(fact.text)
    if isinstance(node, ast.BinOp):
        return _multiplied(run, fact, node)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        turns = "".join(f" {ast.unparse(one).strip()}" for one in node.generators)
        return f"[{_maker(run, fact, node.elt)}{turns}]"
    return _in_call(run, fact, node) if isinstance(node, ast.Call) else ""


def copies(text: str) -> bool:
    """True if what was written needs `import copy`."""
    return "copy.deepcopy(" in text


def imports_copy(run: Run) -> bool:
    """True if a cell has `import copy`."""
    trees = [syntax.parse(one.cell.source) for one in (run, *run.earlier)]
    imports = (node for tree in trees if tree is not None for node in syntax.walk(tree) if isinstance(node, ast.Import))
    return any(one.name == "copy" and one.asname is None for node in imports for one in node.names)


def _multiplied(run: Run, fact: RepeatedFact, product: ast.BinOp) -> str:
    sides = (product.left, product.right)
    lists = [side for side in sides if isinstance(side, (ast.List, ast.Tuple))]
    counts = [side for side in sides if side not in lists]
    if len(lists) != 1 or not counts or any(isinstance(one, ast.Starred) for one in lists[0].elts):
        return ""
    parts, turns = [_maker(run, fact, one) for one in lists[0].elts], ast.unparse(counts[0])
    if len(parts) == 1:
        return f"[{parts[0]} for _ in range({turns})]"
    return f"[layer for _ in range({turns}) for layer in ({', '.join(parts)})]"


def _in_call(run: Run, fact: RepeatedFact, call: ast.Call) -> str:
    """Of `repeat(layer, n)`, `dict.fromkeys(keys, layer)`, and what a loop appends."""
    name = ast.unparse(call.func).rpartition(".")[2]
    given = call.args
    if name == "repeat" and len(given) > 1:
        return f"[{_maker(run, fact, given[0])} for _ in range({ast.unparse(given[1])})]"
    if name == "fromkeys" and len(given) > 1:
        return f"{{key: {_maker(run, fact, given[1])} for key in {ast.unparse(given[0])}}}"
    first = "".join(f"{ast.unparse(one)}, " for one in given[:-1])
    return f"{ast.unparse(call.func)}({first}{_maker(run, fact, given[-1])})" if given else ""


def _maker(run: Run, fact: RepeatedFact, thing: ast.expr) -> str:
    """What makes the object: the call itself, that which the variable was given, or a copy."""
    text = ast.unparse(thing)
    if isinstance(thing, ast.Call):
        return text
    tree, line = syntax.parse(run.source_of(fact.place.cell)), fact.place.line or 0
    nodes = list(syntax.walk(tree)) if tree is not None else []
    around = [n for n in nodes if isinstance(n, syntax.FUNCTIONS) and n.lineno <= line <= (n.end_lineno or 0)]
    scope = max(around, key=lambda n: n.lineno, default=tree)
    given = [one for one in syntax.own_statements(scope) if isinstance(one, ast.Assign)] if scope is not None else []
    values = [one.value for one in given if one.lineno <= line and text in map(ast.unparse, one.targets)]
    made = [one for one in values if isinstance(one, ast.Call) and _names_class(one)]
    return ast.unparse(made[0]) if len(values) == 1 == len(made) else f"copy.deepcopy({text})"


def _names_class(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2][:1].isupper()
