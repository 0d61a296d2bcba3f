"""Which part of its batches a training loop gives a loss as the targets: `batch["speaker"]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.trained_on import Learning, is_off, learning_in, trained_in
from torch_inspector.facts.ways_back import WHOLE, Part

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# Losses over classes: a regression has none that it could forget.
_LOSS = re.compile(r"((binary_)?cross_entropy(_with_logits)?|nll_loss|(CrossEntropy|NLL|BCE(WithLogits)?)Loss)")
_COUNTED = frozenset(["enumerate", "tqdm", "trange", "iter"])
# What leaves each target in its place.
_KEPT = frozenset(
    ["to", "long", "cuda", "cpu", "float", "int", "view", "reshape", "squeeze", "flatten", "unsqueeze", "clone"]
)
_FAR, _DEEPEST = 8, 1
_EVENTS = (ast.Assign, ast.Call, ast.Name)


class _Texts(NamedTuple):
    """What the texts of the cells define, the latest of each name."""

    losses: frozenset[str]
    """What the notebook calls its losses over classes."""
    learning: Learning
    functions: dict[str, ast.FunctionDef]
    methods: dict[str, dict[str, ast.FunctionDef]]
    """Of each class."""
    kinds: dict[str, str]
    """Classes of variables."""


def targets_of(run: Run, place: Place) -> frozenset[Part]:
    """The parts that the loop in a line gives losses over classes, itself or in a function that it gives the batch.

    Only losses that are trained on: `backward()` is called on them, by name or where a function has given them back.
    """
    tree = syntax.parse(run.source_of(place.cell))
    loops = [one for one in syntax.walk(tree) if isinstance(one, ast.For)] if tree is not None else []
    loop = next((one for one in loops if one.iter.lineno == place.line), None)
    if loop is None:
        return frozenset()
    names, texts = dict(_unpacked(_target(loop), WHOLE)), _read(run)
    classes = [one for one in (tree.body if tree is not None else ()) if isinstance(one, ast.ClassDef)]
    own = next((one.name for one in classes if loop in syntax.walk(one)), "")
    texts = texts._replace(kinds=texts.kinds | {"self": own})
    return frozenset(_given(loop.body, names, texts, frozenset()))


def _read(run: Run) -> _Texts:
    sources = reversed(dict.fromkeys(past.cell.source for past in (run, *reversed(run.earlier))))
    trees = [tree for source in sources if (tree := syntax.parse(source)) is not None]
    stores = [node for tree in trees for node in syntax.walk(tree) if isinstance(node, ast.Assign)]
    made = {name: value for store in stores for name, value in _made(store)}
    live = {one.path.rpartition(".")[2]: one.kind for one in run.after.modules if one.path}
    kinds = {name: syntax.last_part(value.func) for name, value in made.items() if isinstance(value, ast.Call)} | live
    losses = {name for name, value in made.items() if _is_loss(value, frozenset())}
    functions = [one for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)]
    classes = [one for tree in trees for one in tree.body if isinstance(one, ast.ClassDef)]
    return _Texts(
        frozenset(name for name in losses if name not in live or _LOSS.fullmatch(live[name])),
        learning_in(functions),
        {one.name: one for one in functions},
        {each.name: {one.name: one for one in each.body if isinstance(one, ast.FunctionDef)} for each in classes},
        kinds,
    )


def _made(store: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Names, and last names of fields, with what they are given: `criterion` of `self.criterion = …`."""
    for target in store.targets:
        pairs = [(target, store.value)]
        if isinstance(target, ast.Tuple):
            values = store.value.elts if isinstance(store.value, ast.Tuple) else [store.value] * len(target.elts)
            pairs = list(zip(target.elts, values, strict=False))
        for one, value in pairs:
            if isinstance(one, (ast.Name, ast.Attribute)):
                yield syntax.last_part(one), _unmoved(value)


def _unmoved(node: ast.expr) -> ast.expr:
    """`nn.CrossEntropyLoss()` of `nn.CrossEntropyLoss().to(device)`."""
    for _ in range(_FAR):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEPT:
            break
        node = node.func.value
    return node


def _target(loop: ast.For) -> ast.expr:
    """What stands for the batch: `batch` of `for i, batch in enumerate(loader)`."""
    target, value = loop.target, loop.iter
    while isinstance(value, ast.Call) and value.args and syntax.last_part(value.func) in _COUNTED:
        if syntax.last_part(value.func) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        value = value.args[0]
    return target


def _unpacked(target: ast.expr, part: Part) -> Iterator[tuple[str, Part]]:
    """The names of a batch, or of its parts, after `x, y, name = batch`."""
    if isinstance(target, ast.Name):
        yield target.id, part
    elif isinstance(target, (ast.Tuple, ast.List)) and part == WHOLE:
        yield from ((one.id, place) for place, one in enumerate(target.elts) if isinstance(one, ast.Name))


def _given(
    body: list[ast.stmt], names: dict[str, Part], texts: _Texts, returned: frozenset[Part], *, deep: int = 0
) -> Iterator[Part]:
    """What a loss gets second, or as its target; `names` are those of the batch and of its parts at the beginning."""
    names, trained = dict(names), trained_in(body, texts.learning, returned)
    every = [node for one in body for node in syntax.walk(one)]
    assigned = {
        id(part) for one in every if isinstance(one, ast.Assign) for t in one.targets for part in syntax.walk(t)
    }
    for node in sorted((one for one in every if isinstance(one, _EVENTS)), key=_when):
        if isinstance(node, ast.Assign):
            stored = dict(_stored(node, names))
            for name in {part.id for one in node.targets for part in syntax.walk(one) if isinstance(part, ast.Name)}:
                names.pop(name, None)
            names.update(stored)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and id(node) not in assigned:
                names.pop(node.id, None)
        elif not _is_loss(node.func, texts.losses):
            yield from _given_inside(node, names, texts, deep, trained.nodes.get(id(node), frozenset()))
        elif id(node) in trained.nodes:
            given = [one.value for one in node.keywords if one.arg == "target"] or node.args[1:2]
            yield from (part for one in given if (part := _part(one, names)) not in (None, WHOLE))


def _when(node: ast.Assign | ast.Call | ast.Name) -> tuple[int, int]:
    """An assignment is done after all that stands in it."""
    if isinstance(node, ast.Assign):
        return node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno, node.col_offset


def _stored(node: ast.Assign, names: dict[str, Part]) -> Iterator[tuple[str, Part]]:
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for one, value in pairs:
            part = _part(value, names)
            yield from _unpacked(one, part) if part is not None else ()


def _part(node: ast.expr, names: dict[str, Part]) -> Part | None:
    """The part of a batch that an expression is; None for any other."""
    node = _unmoved(node)
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
        return key if isinstance(key, (str, int)) and _part(node.value, names) == WHOLE else None
    return None


def _given_inside(
    call: ast.Call, names: dict[str, Part], texts: _Texts, deep: int, returned: frozenset[Part]
) -> Iterator[Part]:
    """The same in a function of the notebook that is given the batch, as a `training_step(batch)`."""
    handed = {
        place: names[one.id] for place, one in enumerate(call.args) if isinstance(one, ast.Name) and one.id in names
    }
    function, own = None, 0
    if isinstance(call.func, ast.Name):
        function = texts.functions.get(call.func.id)
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        function, own = texts.methods.get(texts.kinds.get(call.func.value.id, ""), {}).get(call.func.attr), 1
    if not handed or function is None or is_off(function) or deep >= _DEEPEST:
        return
    known = {one.arg: handed[n] for n, one in enumerate(function.args.args[own:]) if n in handed}
    yield from _given(function.body, known, texts, returned, deep=deep + 1)


def _is_loss(function: ast.expr, losses: frozenset[str]) -> bool:
    name = syntax.last_part(function.func if isinstance(function, ast.Call) else function)
    return _LOSS.fullmatch(name) is not None or name in losses
