"""Steps that a text writes by hand: whether some may have run, on a model, since a moment in which its lines are known.

A text that ran before, or that names the tensors of another model, says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import islice
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe.belonging import Belonging, Verdict
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.ran_since import RanSince, Spot, Stretch, own_names

_WRITES = frozenset(["sub_", "add_", "copy_", "addcdiv_", "addcmul_", "_foreach_add_", "_foreach_sub_"])
# Steps that are judged; those that name the same in one scope count as one.
_STEPS = 64


def stepped_by_hand(
    way: tuple[Spot, ...], files: list[CodeFile], variables: Mapping[str, Any], owned: set[int]
) -> bool:
    """True if a text that may have run after some lines writes gradients into what may be a model's.

    Args:
        way: The lines, the innermost first.
        files: Code of the last cells.
        variables: The user's variables.
        owned: Addresses of the memory of the model.
    """
    if not any("grad" in file.code for file in (*files, *(spot.file for spot in way))):
        return False
    texts, belonging = RanSince(way, files), Belonging(variables, owned)
    steps = ((stretch.scope, names) for stretch in texts.stretches() for names in _stepped(stretch))
    return any(_judged(scope, names, texts, belonging) is not False for scope, names in islice(steps, _STEPS))


# what it writes -------------------------------------------------------------


def _stepped(stretch: Stretch) -> set[frozenset[str]]:
    """Names that tell what each step changes: `p -= lr * p.grad`, or the same in a loop over gradients."""
    found, loops = set[frozenset[str]](), _loops_of(stretch.scope)
    for node in stretch.nodes:
        written = _written(node)
        if written is not None and any("grad" in ast.unparse(one) for one in written[1]):
            own = syntax.names_in(written[0])
            found.add(frozenset(own.union(*(over for given, over in loops if own & given))))
        elif isinstance(node, ast.For) and "grad" in ast.unparse(node.iter):
            inner = [part for one in syntax.walk(node) if (part := _written(one)) is not None]
            if inner:
                found.add(frozenset(syntax.names_in(node.iter).union(*(syntax.names_in(one) for one, _ in inner))))
    return found


def _loops_of(scope: ast.AST) -> list[tuple[set[str], set[str]]]:
    """Names that loops give values, with those in what they go through."""
    loops = (
        one for one in syntax.own_expressions(scope) if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))
    )
    return [(syntax.names_in(one.target), syntax.names_in(one.iter)) for one in loops]


def _written(node: ast.AST) -> tuple[ast.expr, list[ast.expr]] | None:
    """What a statement or a call writes into, without giving it other memory, and what it writes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Sub, ast.Add)):
        return node.target, [node.value]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _WRITES:
        return None
    given = [*node.args, *(one.value for one in node.keywords)]
    several = node.func.attr.startswith("_foreach") and given
    return given[0] if several else node.func.value, given


# whose it is ----------------------------------------------------------------


def _judged(scope: ast.AST, names: frozenset[str], texts: RanSince, belonging: Belonging) -> Verdict:
    """Whether a step is one of the model: False if all that it names, or that its function is given, is another's."""
    told = belonging.verdict(names - own_names(scope))
    if told is not None or not isinstance(scope, syntax.FUNCTIONS):
        return told
    given = texts.given_to(scope)
    return belonging.verdict(given) if given is not None else None
