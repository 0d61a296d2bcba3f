"""Where a variable takes the weights of a model, as the text says it, and how the line reads with a copy of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from time import thread_time
from typing import NamedTuple, TypeAlias

from torch_inspector.facts import syntax
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.source import dotted

# What shows the same weights, or would if the kind of numbers were the same; no copies. In a row, not in another shape.
_SHOWS = frozenset(["detach", "cpu", "float", "double", "numpy"])
# Where `to` moves, by name, and types that hold as much as weights as a rule have.
_DEVICES = re.compile(r"dev|cpu|cuda|gpu", re.IGNORECASE)
_TYPES = frozenset(["torch.float", "torch.float32", "torch.double", "torch.float64"])
_IN_A_ROW = frozenset(["view", "flatten", "reshape", "ravel"])
_LISTS = frozenset(["list", "dict", "tuple"])
_ASKED = frozenset(["parameters", "named_parameters"])
_STATE = "state_dict"
_DEEPEST = 8
_IMPORT = "import copy\n"

# What has a target and something that it goes over.
Loop: TypeAlias = ast.For | ast.comprehension


class Taken(NamedTuple):
    """A statement that gives a variable weights."""

    name: str
    source: str
    """What they are taken from: `net.parameters()`, `net[0].weight`."""
    model: str
    node: ast.stmt
    file: CodeFile
    fix: str


def is_state(value: ast.expr) -> bool:
    """True for `net.state_dict()` as it is given: that dictionary is followed as one object."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == _STATE


def origin(side: ast.expr, tree: ast.AST, depth: int = 0) -> str:
    """What a side of a comparison is a part of: a variable, `net.parameters()`, or `net[0].weight`; else nothing."""
    node = bare(side)
    if depth > _DEEPEST:
        return ""
    if isinstance(node, ast.Call):
        return _asked(node)
    if isinstance(node, ast.Name):
        found = {origin(one, tree, depth + 1) for one in bound(node, tree)}
        return found.pop() if len(found) == 1 else "" if found else node.id
    if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Call)):
        # Of a list or dictionary; of a model a layer, which no tensor is compared with.
        return "" if isinstance(node.slice, ast.Slice) else origin(node.value, tree, depth + 1)
    return ast.unparse(node) if isinstance(node, ast.Attribute) and _is_one_place(node) else ""


def in_step(one: ast.expr, other: ast.expr, tree: ast.AST) -> bool:
    """True if both sides go through the same: by the same index, in the same loop; neither has one of its own."""
    sides = [bare(one), bare(other)]
    indexes = [ast.unparse(side.slice) if isinstance(side, ast.Subscript) else "" for side in sides]
    if indexes[0] == indexes[1] != "":
        return True
    by = [side.slice if isinstance(side, ast.Subscript) else side for side in sides]
    loops = [_loop_of(name, tree) if isinstance(name, ast.Name) else None for name in by]
    return loops[0] is loops[1] and (loops[0] is not None or not any(indexes))


def _loop_of(name: ast.Name, tree: ast.AST) -> Loop | None:
    """The innermost loop around a name that gives it its values."""
    around = _loops_in(tree).get(id(name), ())
    gives = (loop for loop in around if name.id in syntax.names_in(loop.target))
    return next(reversed(list(gives)), None)


@lru_cache(maxsize=64)
def _loops_in(tree: ast.AST) -> dict[int, list[Loop]]:
    """The loops and comprehensions of a scope by the names that stand in them, once for all who ask."""
    found: dict[int, list[Loop]] = {}
    for node in syntax.own_expressions(tree):
        loops: list[Loop] = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        names = (one for one in syntax.walk(node) if isinstance(one, ast.Name)) if loops else ()
        for name in names:
            found.setdefault(id(name), []).extend(loops)
    return found


def _is_one_place(node: ast.Attribute) -> bool:
    """True for `net[0].weight`; not for `net[i].weight` and `made().weight`, which may be another each time."""
    inner = list(syntax.walk(node))
    return sum(isinstance(one, ast.Name) for one in inner) == 1 and not any(isinstance(one, ast.Call) for one in inner)


def taken_in(name: str, line: int, files: list[CodeFile], deadline: float) -> Taken | None:
    """The latest statement above a line, or in the cells before, that gives a variable weights."""
    gives = _giving(name)
    for file in takewhile(lambda _: thread_time() < deadline, files):
        tree = file.tree if gives.search(file.code) else None
        last = line if file is files[0] else 1 << 30
        own = [one for one in syntax.own_expressions(tree) if isinstance(one, ast.stmt)] if tree is not None else []
        given = [one for one in own if one.lineno < last and name in _given(one)]
        if given and tree is not None:
            return _read(name, max(given, key=lambda one: one.lineno), tree, file)
    return None


@lru_cache(maxsize=64)
def _giving(name: str) -> re.Pattern[str]:
    """What a text has in it that gives a variable something: the nodes of a long one take milliseconds to list."""
    return re.compile(rf"\b{name}\b(?:\s*\[[^\n]{{0,80}}\])?\s*(?:=(?!=)|\.\s*append\b)")


def _given(node: ast.stmt) -> list[str]:
    """Variables that a statement gives a value, or puts one into."""
    if isinstance(node, ast.Assign):
        return [dotted(one.value if isinstance(one, ast.Subscript) else one) for one in node.targets]
    call = node.value if isinstance(node, ast.Expr) else None
    puts = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    return [dotted(call.func.value)] if puts else []  # type: ignore[union-attr]


def _read(name: str, node: ast.stmt, tree: ast.Module, file: CodeFile) -> Taken | None:
    value = node.value.args[0] if isinstance(node, ast.Expr) else node.value  # type: ignore[attr-defined]
    element = _element(value)
    source = origin(element, tree) if element is not value else origin(value, tree)
    if isinstance(value, ast.Call) and dotted(value.func) in _LISTS and value.args:
        source = origin(value.args[0], tree)
    if not source or source.isidentifier() or isinstance(bare(value), ast.Subscript):
        return None
    fix = _copied(node, value, element)
    return Taken(name, source, source.partition(".")[0].partition("[")[0], node, file, fix)


def with_a_copy(node: ast.stmt | ast.expr, value: ast.expr) -> str:
    """A statement that puts weights into a container, with copies of them."""
    element = _element(value)
    whole, text = ast.unparse(node), ast.unparse(value)
    before, _, after = whole.rpartition(text)
    if isinstance(value, (ast.Tuple, ast.List)):
        parts = [with_a_copy(one, one) for one in value.elts]
        said = ", ".join(one.removeprefix(_IMPORT) for one in parts)
        said = f"[{said}]" if isinstance(value, ast.List) else f"({said}{',' * (len(parts) == 1)})"
        return f"{_IMPORT * any(one.startswith(_IMPORT) for one in parts)}{before}{said}{after}"
    name = isinstance(value, (ast.Name, ast.Attribute)) and not (
        isinstance(value, ast.Attribute) and value.attr == "data"
    )
    if name or _is_dictionary(value):
        return f"{_IMPORT}{before}copy.deepcopy({text}){after}"
    return _copied(node, value, element)


def _is_dictionary(value: ast.expr) -> bool:
    """True for `{"w": net.weight.data}`, `net.state_dict()` and `dict(…)`, which have no `clone`."""
    called = value.func if isinstance(value, ast.Call) else None
    other = dotted(called) == "dict" and "named_parameters" not in ast.unparse(value) if called is not None else False
    return isinstance(value, ast.Dict) or getattr(called, "attr", "") == "state_dict" or other


def copied(value: ast.expr) -> str:
    """An expression that shows weights, with copies of them."""
    return _copied(value, value, _element(value))


def shown_in(value: ast.expr) -> ast.expr | None:
    """The model of `[p.data for p in model.parameters()]`, the weight of `model.weight.detach()`; None for all else."""
    element = _element(value)
    inner = _without_history(element)
    if element is value:
        return inner if inner is not value and dotted(inner).count(".") else None
    head = value.generators[0]  # type: ignore[attr-defined]
    names = head.target.elts[-1:] if isinstance(head.target, ast.Tuple) else [head.target]
    asked = head.iter.func if isinstance(head.iter, ast.Call) else None
    of_model = isinstance(asked, ast.Attribute) and asked.attr in _ASKED and not head.ifs
    return asked.value if of_model and [dotted(one) for one in names] == [dotted(inner)] != [""] else None  # type: ignore[union-attr]


def _without_history(node: ast.expr) -> ast.expr:
    """`p` of `p.data` and of `p.detach()`, which share its memory on every device."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value
    detaches = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return node.func.value if detaches else node  # type: ignore[attr-defined]


def _element(value: ast.expr) -> ast.expr:
    """What a comprehension keeps of each turn; of other expressions all."""
    if isinstance(value, ast.DictComp):
        return value.value
    return value.elt if isinstance(value, (ast.ListComp, ast.GeneratorExp)) else value


def _copied(node: ast.stmt | ast.expr, value: ast.expr, element: ast.expr) -> str:
    """The statement with copies of the weights."""
    new = ast.unparse(element)
    if isinstance(value, ast.Call) and dotted(value.func) in _LISTS:
        asked = ast.unparse(value.args[0])
        asked += ".items()" * asked.endswith(f".{_STATE}()")
        pair = "named_parameters" in asked or asked.endswith(".items()")
        new = f"{{n: p.detach().clone() for n, p in {asked}}}" if pair else f"[p.detach().clone() for p in {asked}]"
        return ast.unparse(node).replace(ast.unparse(value), new)
    bare = "detach()" not in new and ".data" not in new
    whole, part = ast.unparse(node), f"{new} for " if element is not value else new
    copy = f"{new}.copy()" if new.endswith(".numpy()") else f"{new}.detach().clone()" if bare else f"{new}.clone()"
    at = whole.rfind(part)
    return whole[:at] + copy + whole[at + len(new) :]


def bare(node: ast.expr) -> ast.expr:
    """What it shows all of: `p` of `p.data.view(-1)`, `x.detach()` and `dict(net.named_parameters())[n]`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _shows_all(node, node.func.attr):
            node = node.func.value
        elif isinstance(node, ast.Call) and dotted(node.func) in _LISTS and len(node.args) == 1:
            node = node.args[0]
        else:
            return _entry(node) or node


def _entry(node: ast.expr) -> ast.expr | None:
    """`net.fc.weight` of `net.state_dict()['fc.weight']`: an entry shows the very weight."""
    if not isinstance(node, ast.Subscript) or not is_state(node.value):
        return None
    model, key = dotted(node.value.func.value), getattr(node.slice, "value", None)  # type: ignore[attr-defined]
    parts = key.split(".") if model and isinstance(key, str) else []
    if not parts or not all(one.isidentifier() or one.isdecimal() for one in parts):
        return None
    return syntax.expression(model + "".join(f"[{one}]" if one.isdecimal() else f".{one}" for one in parts))


def _shows_all(call: ast.Call, name: str) -> bool:
    if name == "to":
        return _moves_only(call)
    return name in _SHOWS or (name in _IN_A_ROW and [ast.unparse(one) for one in call.args] in ([], ["-1"]))


def _moves_only(call: ast.Call) -> bool:
    """True for `x.to(device)`, and for a type in which no number is another; false for a copy."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg in {"device", "dtype", "other"})]
    names = [dotted(one.func if isinstance(one, ast.Call) else one) for one in given]
    text = [str(one.value) if isinstance(one, ast.Constant) else "" for one in given]
    copies = any(one.arg == "copy" for one in call.keywords)
    same = (
        name in _TYPES or _DEVICES.search(name.rpartition(".")[2] or said)
        for name, said in zip(names, text, strict=True)
    )
    return not copies and bool(given) and all(same)


def _asked(node: ast.Call) -> str:
    """`net.parameters()` for this, for `net.named_parameters()`, and for `net.state_dict()`, which shows them too."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "values" and isinstance(node.func.value, ast.Call):
        return _asked(node.func.value)
    if isinstance(node.func, ast.Attribute) and node.func.attr in (*_ASKED, _STATE) and dotted(node.func.value):
        return f"{dotted(node.func.value)}.parameters()"
    return ""


def bound(name: ast.Name, tree: ast.AST) -> Iterator[ast.expr]:
    """What the loops around a name that give it its values go over."""
    for loop in _loops_in(tree).get(id(name), ()):
        yield from (over for target, over in _parts(loop.target, loop.iter) if dotted(target) == name.id)


def _parts(target: ast.expr, over: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The variables of a loop, each with what it goes through."""
    called = dotted(over.func).rpartition(".")[2] if isinstance(over, ast.Call) else ""
    if called == "" and isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        called = over.func.attr
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if not parts or not isinstance(over, ast.Call):
        yield target, over
    elif called == "zip" and len(parts) == len(over.args):
        for part, one in zip(parts, over.args, strict=True):
            yield from _parts(part, one)
    elif called == "enumerate" and len(parts) == 2 and over.args:  # noqa: PLR2004
        yield from _parts(parts[1], over.args[0])
    elif called in ("items", "named_parameters") and len(parts) == 2 and isinstance(over.func, ast.Attribute):  # noqa: PLR2004
        yield parts[1], over.func.value if called == "items" else over
