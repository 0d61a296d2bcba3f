"""The parts of a module that some parameters make up: `model.head`, `model.prompt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.modules import ModuleFact


def covering(module: ModuleFact, keys: frozenset[int]) -> tuple[str, ...]:
    """Paths of the largest parts all of whose parameters are among some, in the order of the module.

    Empty if some of the parameters have no name there.
    """
    names = {key: name.split(".") for key, name in module.parameter_names}
    if not module.path or not keys <= names.keys():
        return ()
    found = [_largest(parts, names, keys) for key, parts in names.items() if key in keys]
    return tuple(dict.fromkeys(module.path + "".join(map(_step, one)) for one in found))


def _largest(parts: list[str], names: dict[int, list[str]], keys: frozenset[int]) -> list[str]:
    for length in range(1, len(parts)):
        if all(key in keys for key, name in names.items() if name[:length] == parts[:length]):
            return parts[:length]
    return parts


def _step(part: str) -> str:
    return f"[{part}]" if part.isdigit() else f".{part}"
