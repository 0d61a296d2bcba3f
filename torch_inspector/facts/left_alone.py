"""Whether the text of a notebook leaves a tensor alone, or does with its values what no optimizer would."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Who reads gradients steps, attacks or explains by hand, perhaps by another name of the tensor: `for p in parameters`.
_READS_GRADIENTS = re.compile(r"\bgrad\b|\bregister_(post_accumulate_grad_)?hook\b|\b(jacobian|hessian|vjp|jvp)\b")
_WRITES = r"\b{name}\b(\[[^\]\n]*\])?(\.data\b|\s*([-+*/]|//|\*\*)=|\.(?!requires_grad_)\w+_\(|\[[^\]\n]*\]\s*=[^=])"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Functions that are given one variable and are looked into: notebooks hold a few.
_CALLS = 1000
# Whose functions write into nothing that they are given, but for those of `torch.nn.init`, and what only looks.
_READERS = frozenset(
    ("torch", "F", "nn", "functional", "math", "np", "print", "float", "str", "len", "abs", "max", "min")
)


def left_alone(run: Run, name: str, at: Place) -> bool:
    """True if no cell so far reads gradients or writes into a tensor, and the turns of every loop share it."""
    last, texts = _last(name), sources(run)
    if not last or any(_READS_GRADIENTS.search(text) for text in texts) or is_written(run, name):
        return False
    trees = [tree for text in texts if last in text and (tree := syntax.parse(text)) is not None]
    loops = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, syntax.LOOPS))
    if any(last in _given_names(loop) for loop in loops):
        return False
    # A module of the notebook, and a function whose text is known, write into nothing that they are given unseen.
    known = {one.path for one in run.after.modules} | {*_functions(texts)}
    return last not in _made_each_call(run, at) and not any(_is_handed_on(call, last, known) for call in _calls(trees))


def is_written(run: Run, name: str) -> bool:
    """True if a cell so far writes into a tensor, or gives it to a function of the notebook that does."""
    last = _last(name)
    if not last:
        return False
    writes, texts = _written(last), sources(run)
    if any(writes.search(text) for text in texts):
        return True
    trees = [tree for text in texts if last in text and (tree := syntax.parse(text)) is not None]
    # However often a function is called alike, its text is gone through once.
    calls = {(syntax.name_of(call.func), given) for call in _calls(trees) if (given := _given_bare(call, last))}
    functions = _functions(texts) if calls else {}
    # What so many functions are given, nobody follows: it counts as written.
    return len(calls) > _CALLS or any(_writes(one, given) for name, given in calls for one in functions.get(name, ()))


def _last(name: str) -> str:
    """`temperature` of `trainer.temperature`."""
    return re.split(r"\W+", name.partition("[")[0])[-1]


def sources(run: Run) -> tuple[str, ...]:
    """The texts of all cells so far, each once."""
    return tuple(dict.fromkeys(one.cell.source for one in (*run.earlier, run)))


def _written(name: str) -> re.Pattern[str]:
    return re.compile(_WRITES.format(name=re.escape(name)))


def _calls(trees: list[ast.Module]) -> Iterator[ast.Call]:
    return (node for tree in trees for node in syntax.walk(tree) if isinstance(node, ast.Call))


def _given_bare(call: ast.Call, name: str) -> tuple[int | str, ...]:
    """The positions and keywords under which a call is given a variable itself."""
    positions = [index for index, one in enumerate(call.args) if syntax.name_of(one) == name]
    return (*positions, *(one.arg for one in call.keywords if one.arg and syntax.name_of(one.value) == name))


def _is_handed_on(call: ast.Call, name: str, known: set[str]) -> bool:
    """True if a call is given a tensor and may write into it: its code is not of the notebook, or no function's."""
    if not _given_bare(call, name) or syntax.name_of(call.func) in known:
        return False
    callee = ast.unparse(call.func)
    return callee.partition(".")[0] not in _READERS or callee.endswith("_")


def _writes(function: _Function, given: tuple[int | str, ...]) -> bool:
    """True if a function writes into what it is given at some positions, or by some keywords."""
    own = function.args.posonlyargs + function.args.args
    # Of a method the first is what it is called of.
    shift = int(bool(own) and own[0].arg == "self")
    names = [own[one + shift].arg for one in given if isinstance(one, int) and one + shift < len(own)]
    text = ast.unparse(function)
    return any(_written(one).search(text) for one in (*names, *(one for one in given if isinstance(one, str))))


@lru_cache(maxsize=2)
def _functions(texts: tuple[str, ...]) -> dict[str, list[_Function]]:
    """The functions of all texts by name, gathered once for a run."""
    found: dict[str, list[_Function]] = {}
    for text in texts:
        tree = syntax.parse(text)
        for one in syntax.walk(tree) if tree is not None else ():
            if isinstance(one, syntax.FUNCTIONS):
                found.setdefault(one.name, []).append(one)
    return found


def _made_each_call(run: Run, at: Place) -> set[str]:
    """Names that the function around a place gives a value, if no loop in it is around that place."""
    tree, line = syntax.parse(run.source_of(at.cell)), at.line or 0
    nodes = syntax.walk(tree) if tree is not None else ()
    kinds = (*syntax.LOOPS, *syntax.FUNCTIONS)
    around = [one for one in nodes if isinstance(one, kinds) and one.lineno < line <= (one.end_lineno or 0)]
    inner = max(around, key=lambda one: one.lineno, default=None)
    return _given_names(inner) if isinstance(inner, syntax.FUNCTIONS) else set()


def _given_names(scope: ast.AST) -> set[str]:
    stored = (node for node in syntax.walk(scope) if isinstance(getattr(node, "ctx", None), ast.Store))
    return {syntax.name_of(node) for node in stored}
