"""The user's frames that an exception passed through, and the tensors that their code names."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.groups import held_by
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.raised import traceback_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile, Places

# Frames, elements of a container, and tensors that are looked at.
_FRAMES, _ENTRIES, _TENSORS = 8, 16, 400
_FIRST = 4
# Objects inside of objects: those of the user's classes that an object or a model of the user has.
_DEEPEST = 2
_LISTS = (list, tuple, deque)
_DICTS = (dict, OrderedDict, defaultdict)
_MODULE_PARTS = frozenset(("_parameters", "_modules", "_buffers"))


class Scene(NamedTuple):
    """One of the user's frames. Drop it at once."""

    frame: FrameType
    line: int
    """Line in its file, not as typed."""
    file: CodeFile


class Seen(NamedTuple):
    """A tensor that the code of a frame can name."""

    path: str
    tensor: Any
    owner: str
    """Path of the container that holds it, or its own."""
    kind: str
    """`tensor`, the class of that container, or `attribute`."""
    container: Any = None
    nested: bool = False
    """True if an object holds it that another object, or a model, has."""


def scenes_of(error: BaseException, places: Places) -> list[Scene]:
    """The user's frames in the traceback, the innermost first."""
    found, entry = [], traceback_of(error)
    while entry is not None:
        file = places.file_of(entry.tb_frame)
        if file is not None:
            found.append(Scene(entry.tb_frame, entry.tb_lineno, file))
        entry = entry.tb_next
    return found[: -_FRAMES - 1 : -1]


def tensors_of(scene: Scene) -> list[Seen]:
    """Tensors that a frame names: variables, elements, attributes of its objects and of the layers of its models."""
    names = _names_in(scene)
    outer = scene.frame.f_globals
    with locals_of(scene.frame) as values:
        known = [(name, values[name] if name in values else outer.get(name)) for name in names]
        found = [seen for name, value in known for seen in _inside(name, value, 0)]
    # What an object inside of another keeps of a variable is a copy of its name, no state.
    variables = {id(seen.tensor) for seen in found if not seen.nested}
    return [seen for seen in found if not seen.nested or id(seen.tensor) not in variables][:_TENSORS]


def held_in(scene: Scene) -> frozenset[int]:
    """Addresses of what the optimizers hold that a frame names, as variables or as attributes of its objects."""
    outer = scene.frame.f_globals
    with locals_of(scene.frame) as values:
        known = [values[name] if name in values else outer.get(name) for name in _names_in(scene)]
        inner = [part for one in known for part in list(kinds.fields_of(one).values())[: 4 * _ENTRIES]]
        found = [one for one in (*known, *inner) if kinds.is_a(one, torch.optim.Optimizer)]
        return frozenset[int]().union(*map(held_by, found))


def _names_in(scene: Scene) -> dict[str, None]:
    """Names that the code of a frame uses; IPython compiles each statement of a cell on its own."""
    code, tree = scene.frame.f_code, scene.file.tree
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
    if code.co_name == "<module>" and tree is not None:
        names = (*names, *[node.id for node in syntax.walk(tree) if isinstance(node, ast.Name)])
    return dict.fromkeys(names)


def _inside(path: str, value: Any, depth: int) -> Iterator[Seen]:
    kind = type(value)
    if kinds.is_a(value, torch.Tensor):
        yield Seen(path, value, path, "tensor" if depth == 0 else "attribute")
    elif kinds.is_among(kind, (*_LISTS, *_DICTS)):
        yield from _entries(path, value, kinds.class_name(value))
    elif kinds.is_a(value, torch.nn.Module):
        yield from _attributes_of_layers(path, value)
    elif depth == 0:
        for name, part in list(kinds.fields_of(value).items())[: 4 * _ENTRIES]:
            yield from _inside(f"{path}.{name}", part, 1)
    elif depth == 1 and kinds.module_of(kind) == "__main__":
        for name, part in list(kinds.fields_of(value).items())[: 4 * _ENTRIES]:
            if not kinds.is_a(part, torch.nn.Module):
                yield from (seen._replace(nested=True) for seen in _inside(f"{path}.{name}", part, _DEEPEST))


def _entries(path: str, value: Any, kind: str) -> Iterator[Seen]:
    """Tensors of a container, or of a container in it: the states of several layers are tuples in a list."""
    for key, part in _pairs(value):
        inner = list(_pairs(part)) if kinds.is_one_of(part, _LISTS) else []
        for name, one in ((f"{path}[{key}]", part), *((f"{path}[{key}][{i}]", one) for i, one in inner)):
            if kinds.is_a(one, torch.Tensor):
                yield Seen(name, one, path, kind, value)


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if kinds.is_one_of(value, _DICTS):
        entries = list(dict.items(value))[:_ENTRIES]
        return [(repr(key), part) for key, part in entries if kinds.is_one_of(key, (str, int))]
    count = len(value)
    # Of a long one the last, and a few of the first: what is as old as the list itself.
    places = range(count) if count <= _ENTRIES else (*range(_FIRST), *range(count - _ENTRIES + _FIRST, count))
    return [(str(place), value[place]) for place in places]


def _attributes_of_layers(path: str, module: Any) -> Iterator[Seen]:
    """Tensors that a model keeps as attributes or buffers, not its parameters."""
    for prefix, layer in layers.walk_modules(module):
        owner = layers.typed_path(path, module, prefix)
        fields = kinds.fields_of(layer)
        buffers = fields.get("_buffers")
        parts = [*fields.items(), *(buffers.items() if kinds.is_registry(buffers) else ())]
        for name, part in parts:
            if name in _MODULE_PARTS or name.endswith("_hooks"):
                continue
            own = kinds.module_of(type(part)) == "__main__" and not kinds.is_a(part, torch.Tensor)
            if own and not kinds.is_a(part, torch.nn.Module):
                yield from _inside(f"{owner}.{name}", part, 1)
            elif kinds.is_a(part, torch.Tensor) or kinds.is_one_of(part, _LISTS) or kinds.is_one_of(part, _DICTS):
                for seen in _inside(f"{owner}.{name}", part, 1):
                    yield seen._replace(owner=f"{owner}.{name}")
