"""Statements that change something in place, found in the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_AUGMENTED: dict[type[ast.operator], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.Pow: "Pow",
}
_SIGNS: dict[str, str] = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Pow": "**"}
# In-place names that change no values.
_HARMLESS = frozenset(
    ("requires_grad_", "retain_grad_", "share_memory_", "detach_", "rename_", "squeeze_", "unsqueeze_")
)
_SPACES = ("torch", "F", "nn.functional", "torch.nn.functional", "functional")
_LONGEST = 100
# A line of code in a fix that is longer is hard to find one's way in.
_LONGEST_FIX = 200


class Mutation(NamedTuple):
    """One statement."""

    path: str
    """What it changes; empty for a layer with `inplace=True`."""
    line: int
    text: str
    operation: str
    """How the name of its autograd node begins: `Add`, `CopySlices`, `MaskedFill`."""
    remedy: str
    element: str = ""
    """Of `x[i] += y` the operation that it is if `x` is a list of tensors: `Add`."""

    def of_element(self) -> Mutation:
        """The same as a change of one of a list of tensors; its remedy gives the list another."""
        target, sign, value = self.text.partition(f" {_SIGNS.get(self.element, '')}= ")
        value = f"({value})" if " " in value and self.element != "Add" else value
        remedy = f"{target} = {target} {sign.strip(' =')} {value}" if sign and not self.text.endswith("…") else ""
        return self._replace(path=target, operation=self.element, remedy=remedy)

    def remedy_for(self, saved: str) -> str:
        """The same if the operation `saved` keeps what was changed: as a whole, unless it is a part that was read."""
        whole = self.operation == "CopySlices" and saved and not saved.startswith((*_WRITTEN, "Select", "Slice"))
        return f"{self.path} = {self.path}.clone()  # before this line" if whole else self.remedy


# Nodes of `x[i] = v`: of a view, of a mask or numbers; of a tensor that was cut and is named after the whole.
_WRITTEN = ("CopySlices", "IndexPut", "AsStrided")


@lru_cache(maxsize=32)
def mutations(tree: ast.AST) -> tuple[Mutation, ...]:
    """All statements of a text that change a value in place, by line."""
    found = [one for node in syntax.walk(tree) for one in _of(node, tree)]
    return tuple(sorted(found, key=lambda one: one.line))


def _of(node: ast.AST, tree: ast.AST) -> Iterator[Mutation]:
    if isinstance(node, ast.AugAssign):
        yield from _augmented(node)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _base(target):
                remedy = _apart(node, _base(target), tree)
                yield Mutation(_base(target), node.lineno, _text(node), "CopySlices", remedy)
    elif isinstance(node, ast.Call):
        yield from _called(node)


def _apart(node: ast.Assign, path: str, tree: ast.AST) -> str:
    """What mends `h[1] = f(h[0])`: what is read of it has to be a copy, or it itself before it is changed."""
    reads = _Reads(path)
    value = reads.visit(ast.parse(ast.unparse(node.value), mode="eval").body)
    if not reads.count:
        return f"{path} = {path}.clone()  # before this line"
    if _is_read_before(node, path, tree):
        made, target = ast.unparse(node.value), ast.unparse(node.targets[0])
        return f"part = {made}\n{path} = {path}.clone()\n{target} = part"
    return _mended(node, value, reads)


def _is_read_before(node: ast.Assign, path: str, tree: ast.AST) -> bool:
    """True if a statement before it, in the same function, may have had parts of the tensor saved."""
    around = [one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef) and one.lineno < node.lineno]
    within = [one for one in around if (one.end_lineno or 0) >= node.lineno]
    start = max((one.lineno for one in within), default=0)
    parts = [one for one in syntax.walk(tree) if start < getattr(one, "lineno", 0) < node.lineno]
    written = {id(one.value) for one in parts if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)}
    names = (one for one in parts if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in written)
    return any(dotted(one) == path and isinstance(one.ctx, ast.Load) for one in names)


def _mended(node: ast.Assign, value: ast.expr, reads: _Reads) -> str:
    """The statement with copies in it, whole; one line of code is never cut, for it is there to be pasted."""
    text = _whole(ast.Assign([node.targets[0]], value, lineno=node.lineno))
    if len(text) <= _LONGEST_FIX or len(reads.texts) != 1:
        return text
    (read,) = reads.texts
    return f"part = {read}.clone()  # before this line; in it, part in place of {read}"


class _Reads(ast.NodeTransformer):
    """Puts `.clone()` behind each part of a tensor that an expression reads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.count = 0
        self.texts = set[str]()

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if dotted(node.value) != self._path:
            return self.generic_visit(node)
        self.count += 1
        self.texts.add(ast.unparse(node))
        return ast.Call(ast.Attribute(node, "clone", ast.Load()), [], [])


def _augmented(node: ast.AugAssign) -> Iterator[Mutation]:
    path, operation = _base(node.target), _AUGMENTED.get(type(node.op), "")
    if not path:
        return
    if isinstance(node.target, ast.Subscript):
        remedy = f"{path} = {path}.clone()  # before this line"
        yield Mutation(path, node.lineno, _text(node), "CopySlices", remedy, operation)
        return
    sign = _SIGNS.get(operation, "")
    value = ast.unparse(node.value)
    value = f"({value})" if isinstance(node.value, (ast.BinOp, ast.IfExp)) and operation != "Add" else value
    yield Mutation(path, node.lineno, _text(node), operation, f"{path} = {path} {sign} {value}" if sign else "")


def _called(call: ast.Call) -> Iterator[Mutation]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    inplace = any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords)
    first = _base(call.args[0]) if call.args else ""
    if inplace:
        # A layer is made with numbers and switches, a function is given the tensor.
        remedy = _whole(call).replace(", inplace=True", "").replace("inplace=True", "")
        yield Mutation("" if name[:1].isupper() else first, call.lineno, _text(call), name, remedy)
    out = next((_base(k.value) for k in call.keywords if k.arg == "out"), "")
    if out:
        yield Mutation(out, call.lineno, _text(call), name, "")
    if not name.endswith("_") or name.endswith("__") or name in _HARMLESS or not isinstance(call.func, ast.Attribute):
        return
    of_space = dotted(call.func.value) in _SPACES
    path = first if of_space else _base(call.func.value)
    plain = _whole(call).replace(f".{name}(", f".{name[:-1]}(")
    cut = isinstance(call.args[0] if of_space and call.args else call.func.value, ast.Subscript)
    known = "" if name in ("copy_", "fill_", "zero_") or cut else f"{path} = {plain}"
    if path:
        yield Mutation(path, call.lineno, _text(call), "CopySlices" if cut else name, known)


def _base(node: ast.AST) -> str:
    """The variable behind `h`, `h[0]`, `h[:, 1].T`."""
    while isinstance(node, (ast.Subscript, ast.Call)) or (
        isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "data")
    ):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute) or not _is_view(node.func.attr):
                return ""
            node = node.func.value
        else:
            node = node.value
    return dotted(node)


def _is_view(method: str) -> bool:
    known = ("view", "t", "transpose", "permute", "squeeze", "unsqueeze", "narrow", "select", "diagonal", "flatten")
    # Calls in place give back their own tensor: `h.add_(1).mul_(2)`.
    return method in (*known, "expand", "reshape", "view_as") or method.endswith("_")


def _whole(node: ast.AST) -> str:
    """A statement as code that can be pasted, on one line if its text has no line breaks of its own."""
    return ast.unparse(node)


def _text(node: ast.AST) -> str:
    """A statement as it is quoted."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# Layers and functions whose node has another name.
_ALIASES = {"dropout": "mul", "alphadropout": "mul", "relu6": "hardtanh", "selu": "elu", "celu": "elu"}


def matches(operation: str, node_kind: str) -> bool:
    """True if the name of an autograd node is that of an operation: `masked_fill_` for `MaskedFillBackward0`."""
    plain = operation.replace("_", "").lower()
    plain = _ALIASES.get(plain.rstrip("123d") if plain.startswith("dropout") else plain, plain)
    if plain == "copyslices" and node_kind.startswith(_WRITTEN):
        return True
    return bool(plain) and node_kind.lower().startswith(plain)
