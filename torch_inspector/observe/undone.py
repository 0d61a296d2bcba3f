"""Sums and differences of bytes that another part of the text takes back, as a cipher does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from time import thread_time
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted

OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_NAMES: dict[str, type[ast.operator]] = {"add": ast.Add, "sub": ast.Sub, "subtract": ast.Sub}
# All that is read of a text.
_KINDS = frozenset([ast.Assign, ast.AugAssign, ast.Return, ast.Lambda, ast.FunctionDef])
# Methods that leave all there is of a result.
_KEEPS = frozenset(["to", "byte", "view", "reshape", "flatten", "clone", "contiguous"])
_METHODS = _KEEPS | _NAMES.keys()
# Names of a cipher and of what it adds; a key frame and a key point are pictures and places.
_CIPHERS = re.compile(
    r"(?<![a-z])(enc|dec|keys?(?!_?(frame|point|pixel))|otp|xor|nonce|secret)(?![a-z])|cipher|crypt|key_?stream|one_time_pad",
    re.IGNORECASE,
)
_PLACES = (ast.Name, ast.Attribute)


def is_undone(scope: Scope, node: ast.AST, statement: ast.stmt, sides: list[ast.expr]) -> bool | None:
    """True if some text takes the result back: `m + key` in one function, `c - key` in another or of what it gave.

    None where there was no time to read all of it.
    """
    own = _worked_out(node.value if isinstance(node, ast.Assign) else node)
    sign = OPPOSITE.get(own.sign) if own is not None else None
    if sign is None:
        return False
    read = texts_around(scope)
    back = sides if sign is ast.Sub else sides[1:]
    texts = {ast.unparse(side) for side in back if isinstance(side, (ast.Name, ast.Attribute))}
    names = {named(node, statement)} - {""}
    if scope.function:
        names |= {name for text in read or () for name in _given_by(text, scope.function.rpartition(".")[2])}
    mine = {ast.unparse(side) for side in sides}
    found = any(
        one.sign is sign and one.right in texts and _is_of(text, one, names, mine, scope.node)
        for text in read or ()
        for one in text.wholes
    )
    return None if read is None else found


def is_by_a_key(scope: Scope, node: ast.AST, statement: ast.stmt, sides: list[ast.expr]) -> bool:
    """True for a sum or a difference that a name calls a cipher or its key: what takes it back may come later."""
    own = _worked_out(node.value if isinstance(node, ast.Assign) else node)
    if own is None or own.sign not in OPPOSITE:
        return False
    given = (scope.arguments[name] for side in sides if (name := dotted(side)) in scope.arguments)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    texts = [ast.unparse(one) for one in (*sides, *given, *targets)]
    return any(_CIPHERS.search(text) for text in (*texts, scope.function.rpartition(".")[2]))


def _is_of(text: Text, whole: _Whole, names: set[str], mine: set[str], scope: ast.AST) -> bool:
    """True if an operation is of a result by its name, or of what another function than the scope is given."""
    if whole.left in names and (whole.is_stored or any(one is not scope for one in text.around(whole))):
        return True
    given = (arg.arg for one in text.around(whole) if one is not scope for arg in one.args.args)
    return whole.left not in mine and whole.left in given


def texts_around(scope: Scope) -> list[Text] | None:
    """What a scope and the latest cells do; None where the time of the look ends before all are read."""
    found = [text_of(scope.node)]
    for file in scope.reading.places.latest():
        if thread_time() > scope.reading.deadline:
            return None
        if file.tree is not None:
            found.append(text_of(file.tree))
    return found


def _given_by(text: Text, function: str) -> set[str]:
    """Names of what a function gave back: `c = enc(m, key)`."""
    mine = (one for one in text.called if _last_of(one.value) == function)
    return {dotted(target) for one in mine for target in one.targets} - {""}


def _last_of(call: ast.expr) -> str:
    return dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


class _Worked(NamedTuple):
    """A sum or a difference, in whichever way it is written."""

    left: ast.expr
    sign: type[ast.operator]
    right: ast.expr


def _worked_out(node: ast.AST) -> _Worked | None:
    """The sum or difference that `a - b`, `a -= b`, `a.sub(b)` and `torch.sub(a, b)` are."""
    if isinstance(node, ast.BinOp):
        return _Worked(node.left, type(node.op), node.right)
    if isinstance(node, ast.AugAssign):
        return _Worked(node.target, type(node.op), node.value)
    func = node.func if isinstance(node, ast.Call) else None
    sign = _NAMES.get(func.attr.rstrip("_")) if isinstance(func, ast.Attribute) else None
    if sign is None or not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute):
        return None
    sides = [*([] if dotted(func.value) == "torch" else [func.value]), *node.args]
    return _Worked(sides[0], sign, sides[1]) if len(sides) == 2 else None  # noqa: PLR2004


class _Whole(NamedTuple):
    """A sum or a difference of two names that is all that a statement does."""

    left: str
    sign: type[ast.operator]
    right: str
    statement: Any
    """A lambda is one, too."""

    @property
    def is_stored(self) -> bool:
        """True where a name is given the result."""
        return type(self.statement) is ast.Assign or type(self.statement) is ast.AugAssign


class Text(NamedTuple):
    """What is to be known of the text of a cell or a function."""

    wholes: tuple[_Whole, ...]
    """Operations that are all that a statement does."""
    functions: tuple[ast.FunctionDef, ...]
    called: tuple[ast.Assign, ...]
    """Statements that give a name what a function gives back."""
    changed: tuple[ast.Assign | ast.AugAssign, ...]
    """Statements that give a name a sum or a difference."""

    def around(self, whole: _Whole) -> Iterator[ast.FunctionDef | ast.Lambda]:
        """The functions in which an operation stands."""
        line = whole.statement.lineno
        yield from (one for one in self.functions if one.lineno <= line <= (one.end_lineno or line))
        if type(whole.statement) is ast.Lambda:
            yield whole.statement


@lru_cache(maxsize=64)
def text_of(tree: ast.AST) -> Text:
    """The same, gone through once."""
    nodes = [node for node in syntax.walk(tree) if type(node) in _KINDS]
    stores = [one for one in nodes if type(one) is ast.Assign or type(one) is ast.AugAssign]
    return Text(
        tuple(own for one in nodes if _may_be_whole(one) and (own := _alone(one)) is not None),
        tuple(one for one in nodes if type(one) is ast.FunctionDef),
        tuple(one for one in stores if type(one) is ast.Assign and type(one.value) is ast.Call),
        tuple(one for one in stores if type(one) is ast.AugAssign or type(one.value) is ast.BinOp),
    )


def _may_be_whole(node: Any) -> bool:
    """False for most statements, which need no closer look."""
    kind = type(node)
    if kind is ast.AugAssign or kind is ast.FunctionDef:
        return kind is ast.AugAssign
    value = node.body if kind is ast.Lambda else node.value
    if type(value) is ast.Call:
        return type(value.func) is ast.Attribute and value.func.attr.rstrip("_") in _METHODS
    plain = type(value) is ast.BinOp and isinstance(value.left, _PLACES) and isinstance(value.right, _PLACES)
    return plain and type(value.op) in OPPOSITE


def _alone(statement: Any) -> _Whole | None:
    """The operation of `c = …`, `return …` and `lambda c: …`; `c -= key` is one as a whole."""
    kind = type(statement)
    value = statement if kind is ast.AugAssign else statement.body if kind is ast.Lambda else statement.value
    work = _worked_out(_bare(value))
    left, right = (dotted(work.left), dotted(work.right)) if work is not None else ("", "")
    return _Whole(left, work.sign, right, statement) if work is not None and left and right else None


def _bare(value: ast.AST) -> ast.AST:
    """`c - key` of `(c - key).to(torch.uint8).reshape(3, 3)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPS:
        value = value.func.value
    return value


def named(node: ast.AST, statement: ast.AST) -> str:
    """The one name that a statement gives the very node, or changes."""
    if isinstance(statement, ast.AugAssign) and node is statement:
        return dotted(statement.target)
    given = isinstance(statement, ast.Assign) and node in (statement, statement.value) and len(statement.targets) == 1
    return dotted(statement.targets[0]) if given and isinstance(statement, ast.Assign) else ""
