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
from torch_inspector.observe.definitions import Function, definition, own_name
from torch_inspector.observe.guarded import Guarded, guarded
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

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
# What else draws random numbers, in either mode: then that some were drawn does not show who drew them.
_NOISES = frozenset(
    ["rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_", "uniform_",
     "bernoulli", "bernoulli_", "multinomial", "poisson", "exponential_", "geometric_", "log_normal_", "cauchy_",
     "random_", "sample", "rsample", "gumbel_softmax"]
)  # fmt: skip
# Functions of the user that are followed from one `forward`, and classes looked at in one module.
_FUNCTIONS, _CLASSES = 32, 64


def dropouts_in(module: Any, places: Places) -> tuple[DropoutFact, ...]:
    """Every such call that the `forward` of the module, or of a part of it, leads to, as its text says."""
    found: dict[tuple[int, int], DropoutFact] = {}
    classes: set[int] = set()
    noisy = False
    for _, layer in layers.walk_modules(module):
        kind = type(layer)
        if id(kind) in classes:
            continue
        classes.add(id(kind))
        if kinds.module_of(kind).startswith("torch."):
            continue
        for function, tested in _reached(kind, places):
            noisy = noisy or bool(_NOISES & _used(function, places))
            for fact in (*_calls_in(function, layer, places), *_attending(function, layer, places)):
                own = fact._replace(tested=fact.tested or tested)
                found.setdefault((fact.place.cell or 0, fact.place.line or 0), own)
        if len(classes) >= _CLASSES:
            break
    return tuple(one._replace(alone=not noisy) for one in found.values())


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


def _reached(kind: type[Any], places: Places) -> Iterator[tuple[FunctionType, bool]]:
    """`forward` of a class, and functions and methods of the user that it names in either mode, and so on.

    With each, whether it is called under tests.
    """
    stack = [(_method(kind, "forward"), False)]
    seen: set[CodeType] = set()
    while stack and len(seen) < _FUNCTIONS:
        function, tested = stack.pop()
        if function is None or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        yield function, tested
        names, always = _used(function, places), _used(function, places, untested=True)
        for name in (*(names - always), *always):  # the last is gone into first
            under = tested or name not in always
            stack.extend(((_method(kind, name), under), (_plain(dict.get(function.__globals__, name)), under)))


def _used(function: FunctionType, places: Places, *, untested: bool = False) -> frozenset[str]:
    """Names in the code of a function, without those under a test of the mode, or under any."""
    node, names = _text_of(function, places), names_of(function.__code__)
    if node is None or not (untested or any("training" in name for name in names)):
        return names
    return names & (guarded(node).untested_names if untested else guarded(node).names)


def _text_of(function: FunctionType, places: Places) -> Function | None:
    tree = places.tree_of(function.__code__)
    return definition(tree, function.__code__) if tree is not None else None


def _method(kind: type[Any], name: str) -> FunctionType | None:
    for base in kinds.mro_of(kind):
        if kinds.module_of(base).partition(".")[0] == "torch":
            return None
        found = kinds.class_fields(base).get(name)
        if found is not None:
            inner = found.fget if type(found) is property else found
            return _plain(inner.__func__ if type(inner) is staticmethod else inner)
    return None


def _plain(thing: Any) -> FunctionType | None:
    return thing if type(thing) is FunctionType and thing.__module__ == "__main__" else None


def _calls_in(function: FunctionType, layer: Any, places: Places) -> Iterator[DropoutFact]:
    file, node = places.file_of_code(function.__code__), _text_of(function, places)
    if file is None or node is None or not any("drop" in name.lower() for name in _words(function)):
        return
    text, kind, own = guarded(node), kinds.class_name(layer), own_name(node)
    local = _local_layers(node, function)
    for part in text.calls():
        call: Any = part.node
        if text.asks(part) or (_is_told_to(call) and any(_is_chosen(test, node, own) for test in part.tests)):
            continue
        fact = DropoutFact(
            places.place_in(file, function.__code__, call.lineno), kind, ast.unparse(call.func), ast.unparse(call),
            own=own, tested=bool(part.tests),
        )  # fmt: skip
        if (
            _is_drop(call, function)
            and (not _is_told(call) or _is_told_to(call))
            and not _is_off(call, text, layer, own)
        ):
            yield fact._replace(told=_with_the_mode(call, own) if _is_told(call) else "")
        made = local.get(dotted(call.func)) if local else None
        made = call.func if made is None and _makes_layer(call.func, function) else made
        if isinstance(made, ast.Call) and not _MODES & set(names_of(function.__code__)):
            yield fact._replace(name=ast.unparse(made.func), text=ast.unparse(made), is_layer=True)


def _is_chosen(test: ast.expr, node: Function, own: str) -> bool:
    """True for a test of what the function was given, or of a setting of its module: somebody chooses."""
    given = syntax.parameters_of(node) - {own}
    fields = (one for one in syntax.walk(test) if isinstance(one, ast.Attribute) and syntax.root_of(one) == own)
    return bool(syntax.names_in(test) & given) or any(fields)


def _is_off(call: ast.Call, text: Guarded, layer: Any, own: str) -> bool:
    """True if the probability is 0 now, or comes from the mode."""
    named = [one.value for one in call.keywords if one.arg == "p"]
    rate = next(iter(named or call.args[1:2]), None)
    if rate is None or isinstance(rate, ast.Starred):
        return False
    asked = [_method(type(layer), syntax.name_of(one)) for one in syntax.walk(rate) if syntax.root_of(one) == own]
    if any(one is not None and "training" in names_of(one.__code__) for one in asked):
        return True
    value = _value_of(rate, layer, own)
    return text.tells(rate) or (kinds.is_one_of(value, (int, float)) and value == 0)


def _attending(function: FunctionType, layer: Any, places: Places) -> Iterator[DropoutFact]:
    """Attention with a probability that is above 0 now, in code that never asks for the mode."""
    names = names_of(function.__code__)
    aliased = any(_is_one_of(dict.get(function.__globals__, name), _ATTENTIONS) for name in names)
    if "training" in names or not (_ATTENTION in names or aliased):
        return
    file, node = places.file_of_code(function.__code__), _text_of(function, places)
    for part in guarded(node).calls() if file is not None and node is not None else ():
        call: Any = part.node
        rate = _rate(call) if _is_one_of(_named(call.func, function), _ATTENTIONS) else None
        value: Any = _value_of(rate, layer, own_name(node)) if rate is not None else None  # type: ignore[arg-type]
        if file is not None and rate is not None and kinds.is_one_of(value, (int, float)) and value > 0:
            place = places.place_in(file, function.__code__, call.lineno)
            kind = kinds.class_name(layer)
            fact = DropoutFact(place, kind, ast.unparse(call.func), ast.unparse(call), rate=ast.unparse(rate))
            yield fact._replace(own=own_name(node), tested=bool(part.tests))  # type: ignore[arg-type]


def _rate(call: ast.Call) -> ast.expr | None:
    """The probability with which a call of attention drops, as written."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "dropout_p"), None)
    return call.args[_RATE_AT] if named is None and len(call.args) > _RATE_AT else named


def _value_of(rate: ast.expr, layer: Any, own: str) -> Any:
    """A number as written, and a field of the layer such as `self.p` or `self.drop.p` as it is now; else None."""
    if isinstance(rate, ast.Constant):
        return rate.value
    first, *rest = dotted(rate).split(".")
    value: Any = layer if first == own and rest else None
    for part in rest:
        fields = kinds.fields_of(value)
        inner = fields.get("_modules")
        value = fields.get(part, inner.get(part) if kinds.is_registry(inner) else None)
    return value


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


def _with_the_mode(call: ast.Call, own: str) -> str:
    """The call with `self.training` in place of the constant."""
    given, fresh = _given_mode(call)[0], ast.Attribute(ast.Name(own), "training")
    arguments = [fresh if one is given else one for one in call.args]
    keywords = [ast.keyword(one.arg, fresh if one.value is given else one.value) for one in call.keywords]
    return ast.unparse(ast.Call(call.func, arguments, keywords))
