"""Calls of `F.dropout` in the code of a module that are not told the mode, or told to drop: they do in eval mode, too.

So do layers `nn.Dropout` that the code makes while it runs, and `F.scaled_dot_product_attention`, which has no argument
for the mode: it drops with the probability that it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from torch_inspector.facts import DropoutFact, syntax
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile, Places

# `alpha_dropout` and its like are off unless they are told otherwise.
_NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d")
_DROPS = tuple(f for f in (functional.__dict__.get(name) for name in _NAMES) if f is not None)
# Layers that know their mode, if a module has them; made anew in a pass they are in train mode.
_LAYERS = (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d, torch.nn.AlphaDropout)
# Names in code that sets or asks for a mode.
_MODES = frozenset(("training", "train", "eval"))
# The third argument is `training`, whoever gives it.
_TRAINING_AT = 2
# Attention, whose fifth argument is the probability.
_ATTENTION = "scaled_dot_product_attention"
_ATTENTIONS = tuple(f for f in (functional.__dict__.get(_ATTENTION),) if f is not None)
_RATE_AT = 4
# Functions of the user that are followed from one `forward`, and classes looked at in one module.
_FUNCTIONS, _CLASSES = 32, 64


def dropouts_in(module: Any, places: Places) -> tuple[DropoutFact, ...]:
    """Every such call that the `forward` of the module, or of a part of it, leads to, as its text says."""
    found: dict[tuple[int, int], DropoutFact] = {}
    classes: set[int] = set()
    for _, layer in layers.walk_modules(module):
        kind = type(layer)
        if id(kind) in classes:
            continue
        classes.add(id(kind))
        if kinds.module_of(kind).startswith("torch."):
            continue
        for function in _reached(kind):
            for fact in (*_calls_in(function, kinds.class_name(layer), places), *_attending(function, layer, places)):
                found.setdefault((fact.place.cell or 0, fact.place.line or 0), fact)
        if len(classes) >= _CLASSES:
            break
    return tuple(found.values())


def random_state() -> tuple[Any, ...]:
    """The states of the random numbers, the CPU's and those of CUDA if that has been started; drawing none."""
    return tuple(generator.get_state() for generator in _generators())


def has_drawn(states: tuple[Any, ...]) -> bool:
    """True if random numbers have been drawn since those states were read."""
    return any(not torch.equal(one, two) for one, two in zip(states, random_state(), strict=False))


def _generators() -> tuple[torch.Generator, ...]:
    """On the host as torch keeps them: to read one waits for no device, but is refused while a graph is captured."""
    if not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
        return (torch.default_generator,)
    return (torch.default_generator, *torch.cuda.default_generators)


def _reached(kind: type[Any]) -> Iterator[FunctionType]:
    """`forward` of a class, and functions and methods of the user that it names, and so on."""
    stack = [_method(kind, "forward")]
    seen: set[CodeType] = set()
    while stack and len(seen) < _FUNCTIONS:
        function = stack.pop()
        if function is None or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        yield function
        for name in names_of(function.__code__):
            stack.extend((_method(kind, name), _plain(dict.get(function.__globals__, name))))


def _method(kind: type[Any], name: str) -> FunctionType | None:
    for base in kinds.mro_of(kind):
        if kinds.module_of(base).partition(".")[0] == "torch":
            return None
        found = kinds.class_fields(base).get(name)
        if found is not None:
            return _plain(found.__func__ if type(found) is staticmethod else found)
    return None


def _plain(thing: Any) -> FunctionType | None:
    return thing if type(thing) is FunctionType and thing.__module__ == "__main__" else None


def _calls_in(function: FunctionType, kind: str, places: Places) -> Iterator[DropoutFact]:
    file = places.file_of_code(function.__code__)
    node = _node_of(function.__code__, file)
    if file is None or node is None or not any("drop" in name.lower() for name in _words(function)):
        return
    local = _local_layers(node, function)
    given = syntax.parameters_of(node) - {"self"} if isinstance(node, syntax.FUNCTIONS) else set[str]()
    for call, tests in _calls_under(node):
        if any("training" in ast.unparse(t) for t in tests):
            continue
        if _is_told_to(call) and any(syntax.names_in(t) & given for t in tests):
            continue  # the caller chooses
        place = places.place_in(file, function.__code__, call.lineno)
        if _is_drop(call, function) and (not _is_told(call) or _is_told_to(call)):
            told = _with_the_mode(call) if _is_told(call) else ""
            yield DropoutFact(place, kind, ast.unparse(call.func), ast.unparse(call), told=told)
        made = local.get(dotted(call.func)) if local else None
        made = call.func if made is None and _makes_layer(call.func, function) else made
        if isinstance(made, ast.Call) and not _MODES & set(names_of(function.__code__)):
            yield DropoutFact(place, kind, ast.unparse(made.func), ast.unparse(made), is_layer=True)


def _attending(function: FunctionType, layer: Any, places: Places) -> Iterator[DropoutFact]:
    """Attention with a probability that is above 0 now, in code that never asks for the mode."""
    names = names_of(function.__code__)
    aliased = any(_is_one_of(dict.get(function.__globals__, name), _ATTENTIONS) for name in names)
    if "training" in names or not (_ATTENTION in names or aliased):
        return
    file = places.file_of_code(function.__code__)
    node = _node_of(function.__code__, file)
    for call, _ in _calls_under(node) if file is not None and node is not None else ():
        rate = _rate(call) if _is_one_of(_named(call.func, function), _ATTENTIONS) else None
        if file is not None and rate is not None and _is_live(rate, layer):
            place = places.place_in(file, function.__code__, call.lineno)
            kind = kinds.class_name(layer)
            yield DropoutFact(place, kind, ast.unparse(call.func), ast.unparse(call), rate=ast.unparse(rate))


def _rate(call: ast.Call) -> ast.expr | None:
    """The probability with which a call of attention drops, as written."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "dropout_p"), None)
    return call.args[_RATE_AT] if named is None and len(call.args) > _RATE_AT else named


def _is_live(rate: ast.expr, layer: Any) -> bool:
    """True for a number above 0, and for a field of the layer such as `self.p` or `self.drop.p` that is one now."""
    value: Any = rate.value if isinstance(rate, ast.Constant) else None
    first, *rest = dotted(rate).split(".")
    if first == "self" and rest:
        value = layer
        for part in rest:
            fields = kinds.fields_of(value)
            inner = fields.get("_modules")
            value = fields.get(part, inner.get(part) if kinds.is_registry(inner) else None)
    return kinds.is_one_of(value, (int, float)) and value > 0


def _local_layers(node: ast.AST, function: FunctionType) -> dict[str, ast.expr]:
    """Variables of a function that it gives a dropout layer made in it: no module knows of those."""
    found = (n for n in syntax.walk(node) if isinstance(n, ast.Assign) and _makes_layer(n.value, function))
    return {one.targets[0].id: one.value for one in found if isinstance(one.targets[0], ast.Name)}


def _makes_layer(node: ast.expr, function: FunctionType) -> bool:
    """True for `nn.Dropout(0.5)`."""
    return isinstance(node, ast.Call) and _is_one_of(_named(node.func, function), _LAYERS)


def _words(function: FunctionType) -> tuple[str, ...]:
    """Names that its code uses; `drop` may stand for anything that has been imported under it."""
    names = names_of(function.__code__)
    return (*names, *("drop" for name in names if _is_one_of(dict.get(function.__globals__, name), _DROPS)))


def _node_of(code: CodeType, file: CodeFile | None) -> ast.AST | None:
    """The definition of a function in the text of its cell."""
    if file is None or file.tree is None:
        return None
    for node in syntax.walk(file.tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = node.decorator_list[0] if isinstance(node, ast.FunctionDef) and node.decorator_list else node
            name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
            if (name, first.lineno) == (code.co_name, code.co_firstlineno):
                return node
    return None


def _calls_under(node: ast.AST) -> Iterator[tuple[ast.Call, tuple[ast.expr, ...]]]:
    """Every call with the conditions under which it is made."""
    stack: list[tuple[ast.AST, tuple[ast.expr, ...]]] = [(node, ())]
    while stack:
        one, tests = stack.pop()
        if isinstance(one, ast.Call):
            yield one, tests
        inner = (*tests, one.test) if isinstance(one, (ast.If, ast.IfExp)) else tests
        stack.extend((child, inner) for child in syntax.children(one))


def _is_drop(call: ast.Call, function: FunctionType) -> bool:
    """True if the name that is called stands for one of torch's functions."""
    first, *rest = dotted(call.func).split(".")
    thing = _named(call.func, function)
    if thing is None and first not in function.__globals__:
        return bool(rest) and rest[-1] in _NAMES and (first == "F" or "functional" in rest)
    return _is_one_of(thing, _DROPS)


def _named(node: ast.expr, function: FunctionType) -> Any:
    """What a dotted name stands for among the globals of a function; None if it is not known."""
    first, *rest = dotted(node).split(".")
    thing = dict.get(function.__globals__, first)
    for part in rest:
        thing = kinds.fields_of(thing).get(part) if thing is not None else None
    return thing


def _is_one_of(thing: Any, several: tuple[Any, ...]) -> bool:
    return any(thing is one for one in several)


def _is_told(call: ast.Call) -> bool:
    """True if `training` is given, by name or place, or may be: then somebody has thought of it."""
    named = {keyword.arg for keyword in call.keywords}
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return bool(named & {"training", "train", None}) or starred or len(call.args) > _TRAINING_AT


def _is_told_to(call: ast.Call) -> bool:
    """True for `training=True`, by name or place."""
    return any(isinstance(one, ast.Constant) and one.value is True for one in _given_mode(call))


def _given_mode(call: ast.Call) -> list[ast.expr]:
    if any(isinstance(one, ast.Starred) for one in call.args):
        return []
    named = [keyword.value for keyword in call.keywords if keyword.arg == "training"]
    return [*call.args[_TRAINING_AT : _TRAINING_AT + 1], *named]


def _with_the_mode(call: ast.Call) -> str:
    """The call with `self.training` in place of the constant."""
    given, fresh = _given_mode(call)[0], ast.Attribute(ast.Name("self"), "training")
    arguments = [fresh if one is given else one for one in call.args]
    keywords = [ast.keyword(one.arg, fresh if one.value is given else one.value) for one in call.keywords]
    return ast.unparse(ast.Call(call.func, arguments, keywords))
