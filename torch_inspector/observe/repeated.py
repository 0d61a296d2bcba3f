"""One layer several times in a list of layers, and the text that put it there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import nn

from torch_inspector.facts import Place, RepeatedFact, syntax
from torch_inspector.observe import kinds, layers, unlisted
from torch_inspector.observe.destined import ANYWHERE, destinations, is_of_the_cell, onward
from torch_inspector.observe.mirrored import MIRROR, mirrored_facts, with_reversal
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile

_LISTS = (
    (nn.ModuleList, "ModuleList"),
    (nn.Sequential, "Sequential"),
    (nn.ModuleDict, "ModuleDict"),
    (nn.ParameterList, "ParameterList"),
)
# Elements of a plain list of modules that are looked at.
_ELEMENTS = 64
# Layers with names of their own that are looked at, and names that are counted up.
_NAMED, _NUMBERED = 256, re.compile(r"(.+?)\d+")
_ADDS = ("append", "add_module", "register_module", "insert")
_NAMES = ("add_module", "register_module", "setattr")
# Words in the name of a layer that is meant to be used more than once.
_MEANT = ("shar", "tie", "tied", "recur", "universal", "common", "same", "siamese")


class Repetition(NamedTuple):
    """An expression that gives out one object several times."""

    line: int
    text: str
    in_call: bool
    """True if the object is made in it."""
    kinds: frozenset[str] | None
    """Names of the functions or classes that make the object; None if the text does not say."""
    ends: frozenset[str]
    """Names that may be given the list."""
    known: bool = False
    """True if other cells know these names."""
    head: str = ""
    """How the names begin that it gives the object, one in each turn: `hidden` of `f"hidden{i}"`."""


def repeated_facts(modules: Iterable[tuple[str, Any]]) -> tuple[RepeatedFact, ...]:
    """One fact, without a line, per list of layers in some modules of which all entries are one layer."""
    return tuple(fact for path, one in modules for of in (_facts_of, mirrored_facts) for fact in of(path, one))


def _facts_of(path: str, module: Any) -> Iterator[RepeatedFact]:
    # By class, as there are few classes and many layers.
    sorts: dict[int, str | None] = {}
    for name, one in layers.walk_modules(module):
        kind = type(one)
        if id(kind) not in sorts:
            sorts[id(kind)] = _sort_of(one)
        sort = sorts[id(kind)]
        for where, label, parts in _lists_of(one, sort) if sort is not None else ():
            fact = _fact(".".join(filter(None, (path, name, where))), label, parts)
            if fact is not None:
                yield fact


def _sort_of(module: Any) -> str | None:
    """What kind of list a module is; empty for others that may have lists as attributes, None for layers of torch."""
    label = next((label for kind, label in _LISTS if kinds.is_a(module, kind)), "")
    return label or (None if unlisted.is_torch(type(module)) else "")


def _lists_of(module: Any, sort: str) -> Iterator[tuple[str, str, list[Any]]]:
    """Where each list of layers is, what it is, and what is in it."""
    fields = kinds.fields_of(module)
    if sort:
        yield "", sort, list((fields.get("_parameters" if sort == "ParameterList" else "_modules") or {}).values())
        return
    for name, value in list(fields.items()):
        if type(value) is list and type(name) is str:
            yield name, "list", value[:_ELEMENTS]
    parts = fields.get("_modules")
    yield from _numbered(list(parts.items())[:_NAMED]) if kinds.is_registry(parts) else ()


def _numbered(parts: list[tuple[str, Any]]) -> Iterator[tuple[str, str, list[Any]]]:
    """Layers that have one name and a number each: `hidden0`, `hidden1`."""
    rows: dict[str, list[tuple[str, Any]]] = {}
    for name, part in parts:
        found = _NUMBERED.fullmatch(name)
        if found is not None:
            rows.setdefault(found[1], []).append((name, part))
    for row in rows.values():
        if len(row) > 1:
            yield row[0][0], "names", [part for _, part in row]


def _fact(path: str, container: str, parts: list[Any]) -> RepeatedFact | None:
    """The first entry with parameters that stands there more than once, activations left out."""
    if len(set(map(id, parts))) == len(parts):
        return None
    owning = [part for part in parts if _numbers_in(part)]
    counts = Counter(map(id, owning))
    first = next((part for part in owning if counts[id(part)] > 1 and not kinds.is_a(part, nn.PReLU)), None)
    if first is None:
        return None
    count, kind, numbers = counts[id(first)], kinds.class_name(first), _numbers_in(first)
    return RepeatedFact(path, container, count, kind, numbers, Place(), "", entry_count=_others(counts, len(owning)))


def _others(counts: Counter[int], every: int) -> int:
    return every if len(counts) > 1 else 0


def _numbers_in(part: Any) -> int:
    if kinds.is_a(part, nn.Parameter):
        return layers.number_of(part)
    if not kinds.is_a(part, nn.Module):
        return 0
    return sum(layers.number_of(p) for _, p in layers.walk_parameters(part))


def with_texts(facts: Iterable[RepeatedFact], files: list[CodeFile]) -> tuple[RepeatedFact, ...]:
    """The facts for which a cell has an expression that repeats one object, with its line and text."""
    found = [(file, one) for file in files if file.tree is not None for one in repetitions(file.tree)]
    trees = tuple(file.tree for file in files if file.tree is not None)
    found += [(file, one._replace(ends=onward(trees, one.ends))) for file, one in found if one.known]
    placed = (with_reversal(one, files) if one.container == MIRROR else _placed(one, found) for one in facts)
    return tuple(fact for fact in placed if fact is not None)


def _placed(fact: RepeatedFact, found: list[tuple[CodeFile, Repetition]]) -> RepeatedFact | None:
    """The fact with the first expression that can give out such a layer; one that names its class comes first."""
    fitting = [(file, one) for file, one in found if _fits(fact, one)]
    fitting.sort(key=lambda entry: entry[1].kinds is None)
    for file, one in fitting:
        place = Place(file.cell, one.line + file.offset)
        return fact._replace(place=place, text=one.text, in_call=one.in_call)
    return None


def _fits(fact: RepeatedFact, one: Repetition) -> bool:
    """Where other layers stand beside it, it may have been written out: the text must name its class, in a list."""
    if fact.entry_count and (one.kinds is None or not one.text.startswith(("[", "("))):
        return False
    if fact.container == "names" and not (one.head and fact.path.rpartition(".")[2].startswith(one.head)):
        return False
    if one.ends.isdisjoint((*fact.path.replace("[", ".").split("."), ANYWHERE, "self")):
        return False
    return one.kinds is None or fact.layer_kind in one.kinds


def repetitions(tree: ast.Module) -> list[Repetition]:
    """`[layer] * n`, `[layer for _ in range(n)]`, `dict.fromkeys(keys, layer)`, and appending it in a loop."""
    return [
        _repetition(tree, whole, thing)
        for node in syntax.walk(tree)
        for whole, thing in _repeated(node)
        if not _is_meant(thing) and _may_be_layer(thing)
    ]


def _repetition(tree: ast.Module, whole: ast.expr, thing: ast.expr) -> Repetition:
    made = isinstance(thing, ast.Call)
    ends, known = destinations(tree, whole), is_of_the_cell(tree, whole)
    return Repetition(whole.lineno, ast.unparse(whole), made, _classes_of(thing, tree), ends, known, _head_of(whole))


def _head_of(whole: ast.expr) -> str:
    """Of the name that `add_module` or `setattr` is told; empty for other expressions."""
    name = syntax.last_part(whole.func) if isinstance(whole, ast.Call) else ""
    args = whole.args[name == "setattr" :] if isinstance(whole, ast.Call) and name in _NAMES else []
    text = next((one.value for one in syntax.walk(args[0]) if isinstance(one, ast.Constant)), "") if args else ""
    return re.split(r"[%{]", text)[0] if isinstance(text, str) else ""


def _classes_of(thing: ast.expr, tree: ast.Module) -> frozenset[str] | None:
    """Names of the classes that make the object; None if the text does not say, as where a function makes it."""
    name = dotted(thing)
    given = [n.value for n in syntax.walk(tree) if isinstance(n, ast.Assign) and name in map(dotted, n.targets)]
    values = [thing] if isinstance(thing, ast.Call) else given
    made = [dotted(value.func).rpartition(".")[2] for value in values if isinstance(value, ast.Call)]
    return frozenset(made) if values and all(one[:1].isupper() for one in made) else None


def _repeated(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """An expression and the one object that it gives out several times."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for side in (node.left, node.right):
            if isinstance(side, (ast.List, ast.Tuple)):
                yield from ((node, thing) for thing in side.elts)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and not isinstance(node.elt, ast.Call):
        if not syntax.names_in(node.elt) & {n for g in node.generators for n in syntax.names_in(g.target)}:
            yield node, node.elt
    elif isinstance(node, ast.Call) and dotted(node.func).endswith((".fromkeys", "repeat")) and len(node.args) > 1:
        yield node, node.args[1] if dotted(node.func).endswith("fromkeys") else node.args[0]
    elif isinstance(node, (ast.For, ast.While)):
        yield from _added_in(node)


def _added_in(loop: ast.For | ast.While) -> Iterator[tuple[ast.expr, ast.expr]]:
    bound = {n.id for n in syntax.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    written = {dotted(n) for n in syntax.walk(loop) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    for node in syntax.walk(loop):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        thing, name = node.args[-1], syntax.last_part(node.func)
        if isinstance(thing, ast.Call):
            continue  # made anew in each turn
        adds = name in _ADDS and isinstance(node.func, ast.Attribute)
        if (adds or name == "setattr") and not syntax.names_in(thing) & bound and dotted(thing) not in written:
            yield node, thing


def _is_meant(thing: ast.expr) -> bool:
    """True if the name of the object says that it is shared."""
    name = dotted(thing).rpartition(".")[2].lower()
    return any(word in name for word in _MEANT)


def _may_be_layer(thing: ast.expr) -> bool:
    """Not a number, a text, a shape."""
    return bool(dotted(thing)) or (isinstance(thing, ast.Call) and bool(dotted(thing.func)))
