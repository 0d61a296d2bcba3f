"""Parts of called modules that no gradient reached, and which of them a cut in the text keeps from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch_inspector.facts import CutFact, ForwardFact
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.owned import Whole
from torch_inspector.observe.reach import gradients_readable, is_leaf


class Parts:
    """The parameters of some called modules that optimizers step and that no backward call reached."""

    def __init__(
        self,
        called: Sequence[tuple[ForwardFact | Whole, Any]],
        missing: frozenset[int],
        tensors: Mapping[str, tuple[str, int]] = MappingProxyType({}),
    ) -> None:
        """Tensors are parameters outside of modules: by their name in the code, path and address."""
        self._tensors = tensors
        self._called = [(call, module) for call, module in called if module is not None]
        self._missing = missing
        self._names = {
            call.module: [(name, id(p)) for name, p in layers.walk_parameters(module) if as_torch.requires_grad(p)]
            for call, module in self._called
        }

    def kinds(self) -> dict[str, str]:
        """What the code of modules calls their parts, and the classes of these: `self.encoder`, `self.blocks[]`."""
        found: dict[str, str] = {}
        for _, module in self._called:
            for path, one in layers.walk_modules(module):
                outer, _, last = path.rpartition(".")
                if last.isdigit():
                    found.setdefault(f"self.{outer.rpartition('.')[2]}[]", kinds.class_name(one))
                elif path and kinds.module_of(type(one)) == "__main__":
                    found.setdefault(f"self.{last}", kinds.class_name(one))
        return found

    def raw(self) -> Iterator[str]:
        """What the code calls parameters outside of layers: `self.scale` in a module, `codebook` for a variable."""
        yield from self._tensors
        for _, module in self._called:
            for _, one in layers.walk_modules(module):
                if kinds.module_of(type(one)) == "__main__":
                    own = kinds.fields_of(one).get("_parameters") or {}
                    yield from (f"self.{name}" for name, p in own.items() if p is not None and id(p) in self._missing)

    def kept_by(self, cut: CutFact) -> CutFact:
        """The cut, with the part that it keeps from learning if there is one."""
        if cut.kind == "no_grad" and self._is_pass(cut.sources):
            return cut
        for source in cut.sources:
            if source in self._tensors:
                path, key = self._tensors[source]
                return cut._replace(path=path, keys=frozenset((key,)))
            for call, module in self._called:
                found = self._part(call, source)
                if found is not None and isinstance(call, Whole):
                    every = frozenset(key for _, key in self._names[call.module])
                    found = ("", every) if every <= self._missing else found
                    path = layers.typed_path(call.name, module, found[0])
                    return cut._replace(module=call.module, part=found[0], keys=found[1], path=path)
                if found is not None:
                    return cut._replace(module=call.module, part=found[0], keys=found[1])
        return cut

    def _part(self, call: ForwardFact | Whole, source: str) -> tuple[str, frozenset[int]] | None:
        names = self._names[call.module]
        if source and source == call.name:
            keys = frozenset(key for _, key in names)
            return ("", keys) if keys and keys <= self._missing else None
        layer = source.removeprefix("self.").removesuffix("[]")
        return self._whole(names, layer, some=False) or (
            self._whole(names, layer, some=True) if source.endswith("[]") else None
        )

    def _is_pass(self, sources: tuple[str, ...]) -> bool:
        """True for a pass without gradients of what learns in part: it would keep one part of that as much as another.

        The first of the sources is what is called there; others may stand before it, where they learn.
        """
        learning = [one for one in sources if self._learns(one)]
        lost = any(self._part(call, sources[0]) is not None for call, _ in self._called) if learning else False
        return bool(learning) and (not lost or learning[0] == sources[0]) and sources[0] not in self._tensors

    def _learns(self, source: str) -> bool:
        """True if some layer of that name gets a gradient."""
        layer = source.removeprefix("self.").removesuffix("[]")
        return any(
            key not in self._missing
            for names in self._names.values()
            for name, key in names
            if _path_of(name, layer, some=False)
        )

    def _whole(self, names: list[tuple[str, int]], layer: str, *, some: bool) -> tuple[str, frozenset[int]] | None:
        """The first layer of that name, or the first of its members, that gets no gradient at all."""
        groups: dict[str, set[int]] = {}
        for name, key in names:
            path = _path_of(name, layer, some=some)
            if path:
                groups.setdefault(path, set()).add(key)
        whole = ((path, frozenset(keys)) for path, keys in groups.items() if keys <= self._missing)
        return next(whole, None)


def learning(optimizers: Iterable[Any]) -> frozenset[int]:
    """Parameters of optimizers that have a gradient or state by now: some step has used one, or will."""
    found: set[int] = set()
    readable = gradients_readable()
    for optimizer in optimizers:
        state: Any = kinds.fields_of(optimizer).get("state")
        if kinds.is_a(state, dict):
            found.update(id(key) for key in list(dict.keys(state)))
        for group in parameters_of(optimizer) if readable else ():
            found.update(id(p) for p in group if is_leaf(p) and as_torch.grad(p) is not None)
    return frozenset(found)


def _path_of(name: str, layer: str, *, some: bool) -> str:
    """How far a parameter's name leads to a layer, wherever that stands; `some` for one of its members."""
    before, found, after = f".{name}.".partition(f".{layer}.")
    if not layer or not found:
        return ""
    member = f".{after.partition('.')[0]}" if some and after else ""
    return f"{before}.{layer}{member}".strip(".")
