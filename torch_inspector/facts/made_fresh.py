"""Whether a part of a model starts at random and is to learn, as far as the text of its class tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

# Weights that come from elsewhere, or that are to stay as they are; a class that says so means what it does.
_MEANT = re.compile(
    r"copy|\bload|_load|load_|pre-?train|weights=|state_dict|frozen|freez|fixed|\brandom|reservoir|\becho\b|\belm\b"
    r"|prob(e|ing)\b|teacher|stop[ _-]?grad|untrained|on purpose",
    re.IGNORECASE,
)
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
_BUILTINS = frozenset(
    ["range", "list", "tuple", "dict", "zip", "enumerate", "int", "len", "max", "min", "sum", "round"]
)


def is_made_fresh(run: Run, cut: CutFact) -> bool:
    """True if the class around a cut makes the part of new layers, and no text gives them other weights.

    A copy of a trained encoder, one that is loaded or handed in, and random features are kept from learning on purpose.
    """
    source = run.source_of(cut.place.cell)
    tree = syntax.parse(source)
    own = _class_around(tree, cut.place.line or 0) if tree is not None else None
    steps = cut.part.split(".")
    values = [value for name, value in _fields(own) if name in steps] if own is not None else []
    if own is None or not values or not all(isinstance(one, ast.Call) for one in values):
        return False
    meant = _MEANT.search("\n".join(source.splitlines()[own.lineno - 1 : own.end_lineno])) is not None
    return not meant and all(_is_new(run, one) for one in values) and not _is_given_weights(run, steps[-1])


def _class_around(tree: ast.Module, line: int) -> ast.ClassDef | None:
    classes = (one for one in syntax.walk(tree) if isinstance(one, ast.ClassDef))
    around = [one for one in classes if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(around, key=lambda one: one.lineno, default=None)


def _fields(own: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """What `__init__` gives to fields of `self`, each with its name."""
    first = next((one for one in own.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    nodes = list(syntax.walk(first)) if first is not None else []
    for call in (
        one for one in nodes if isinstance(one, ast.Call) and syntax.last_part(one.func) in ("append", "extend")
    ):
        owner = ast.unparse(call.func).split(".")
        yield from ((owner[-2], one) for one in call.args if owner[0] == "self")
    stores = (one for one in nodes if isinstance(one, ast.Assign))
    for target, value in ((target, one.value) for one in stores for target in one.targets):
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        yield from ((one.attr, given) for one, given in pairs if isinstance(one, ast.Attribute))


def _is_new(run: Run, value: ast.expr) -> bool:
    """True if layers are made by `nn.…`, or by functions and classes of the notebook that say nothing else."""
    nodes = list(syntax.walk(value))
    held = {one.path.partition(".")[0].partition("[")[0] for one in (*run.before.modules, *run.after.modules)}
    if any(isinstance(one, ast.Name) and one.id in held for one in nodes):
        return False
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    given = (one for call in calls if syntax.last_part(call.func) in _CONTAINERS for one in call.args)
    elements = (part for one in given for part in (one.elts if isinstance(one, ast.List) else [one]))
    spread = (one.value if isinstance(one, ast.Starred) else one for one in elements)
    handed_in = any(not isinstance(one, (ast.Call, ast.ListComp, ast.GeneratorExp)) for one in spread)
    return all(_is_plain(run, one.func) for one in calls) and not handed_in


def _is_plain(run: Run, function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return ast.unparse(function).partition(".")[0] in ("nn", "torch")
    if not isinstance(function, ast.Name):
        return False
    if any(_MEANT.search(text) is None for text in _defined(run, function.id)):
        return True
    imported = re.compile(rf"^\s*from torch\.nn import .*\b{re.escape(function.id)}\b", re.MULTILINE)
    return function.id in _BUILTINS or any(imported.search(one.cell.source) for one in (run, *run.earlier))


def _defined(run: Run, name: str) -> Iterator[str]:
    """The latest text of a function or class of the notebook."""
    for source in (one.cell.source for one in (run, *reversed(run.earlier))):
        tree = syntax.parse(source)
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [one for one in (tree.body if tree is not None else ()) if isinstance(one, kinds) and one.name == name]
        if found:
            yield "\n".join(source.splitlines()[found[-1].lineno - 1 : found[-1].end_lineno])
            return


def _is_given_weights(run: Run, name: str) -> bool:
    """True if a line of a cell gives the part other weights: `net.encoder.load_state_dict(…)`."""
    given = re.compile(rf"\b{re.escape(name)}\b.*(copy_\(|load_state_dict|\.data\s*=[^=])")
    return any(given.search(one.cell.source) for one in (run, *run.earlier))
