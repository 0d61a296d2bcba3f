"""Numbers that are zero in float16, as written or under a name: `1e-8`, `EPS`, `self.eps`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

Known = Mapping[str, float | None]
"""Numbers by name; None for names that may stand for several."""
# Half of the smallest number of float16: what is not above it becomes zero.
_ZERO = 2.0**-25


def number_in(node: ast.AST, known: Known) -> float:
    """Such a number; 0 for everything else."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = known.get(ast.unparse(node))
    return value if type(value) is float and 0 < value <= _ZERO else 0.0


def known_numbers(run: Run) -> dict[str, float | None]:
    """What the texts so far give a name, or an attribute, once and for all."""
    found: dict[str, float | None] = {}
    for source in dict.fromkeys(past.cell.source for past in (*run.earlier, run)):
        tree = syntax.parse(source)
        defaults = _defaults(tree, "\n".join(past.cell.source for past in (*run.earlier, run)))
        plain = {id(target): node.value for node in _assigns(tree) for target in node.targets}
        for target in syntax.walk(tree) if tree is not None else ():
            if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(target.ctx, ast.Store):
                name, given = ast.unparse(target), plain.get(id(target))
                value = number_in(given, defaults.get(id(target), {})) if given is not None else 0.0
                found[name] = value if value and found.get(name, value) == value else None
    return found


def _defaults(tree: ast.Module | None, texts: str) -> dict[int, Known]:
    """Parameters of constructors that no text gives another value, by what is assigned in these: `self.eps = eps`."""
    found: dict[int, Known] = {}
    for owner in syntax.walk(tree) if tree is not None else ():
        methods = owner.body if isinstance(owner, ast.ClassDef) else []
        for one in (one for one in methods if isinstance(one, ast.FunctionDef) and one.name == "__init__"):
            held = dict(zip(*_with_default(one), strict=True))
            plain = isinstance(owner, ast.ClassDef) and not re.search(rf"\b{owner.name}\((?!\))", _calls(texts, owner))
            found.update((id(part), held) for part in syntax.walk(one) if plain)
    return found


def _calls(texts: str, owner: ast.ClassDef) -> str:
    """The texts without the line that begins a class."""
    return re.sub(rf"class {owner.name}\b.*", "", texts)


def _with_default(function: ast.FunctionDef) -> tuple[list[str], list[float]]:
    """Parameters and their defaults, those that are such numbers."""
    count = len(function.args.defaults)
    pairs = zip((one.arg for one in function.args.args[-count:] if count), function.args.defaults, strict=False)
    named = [(name, number_in(value, {})) for name, value in pairs]
    return [name for name, value in named if value], [value for _, value in named if value]


def _assigns(tree: ast.Module | None) -> Iterator[ast.Assign]:
    yield from (one for one in syntax.walk(tree) if isinstance(one, ast.Assign)) if tree is not None else ()
