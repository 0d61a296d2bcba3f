"""Layers that a module keeps inside of objects that are no modules, as those of a dataclass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import UnheldFact
    from torch_inspector.facts.run import Run

_PARTS = 2


class PlainHolder(NamedTuple):
    """A module, and the attribute of it that is no module."""

    owner: str
    attribute: str

    @property
    def path(self) -> str:
        """What the user can type to get the object."""
        return f"{self.owner}.{self.attribute}"


def plain_holder(run: Run, fact: UnheldFact) -> PlainHolder | None:
    """The object through which alone a path leads from a module to layers that the module does not count as its own."""
    owners = [one for one in run.after.modules if one.path and fact.module.startswith(f"{one.path}.")]
    owner = max(owners, key=lambda one: len(one.path), default=None)
    if owner is None or fact.keys & owner.parameter_keys:
        return None
    parts = fact.module[len(owner.path) + 1 :].split(".")
    plain = len(parts) == _PARTS and all(part.isidentifier() for part in parts)
    return PlainHolder(owner.path, parts[0]) if plain else None


def registered(holders: dict[PlainHolder, list[str]]) -> str:
    """The lines that make the layers known, in the words of the class; by holder, the paths of its layers."""
    lines = []
    for holder, layers in holders.items():
        own = ", ".join(f"self.{one.removeprefix(f'{holder.owner}.')}" for one in dict.fromkeys(layers))
        lines.append(f"self.{holder.attribute}_layers = nn.ModuleList([{own}])")
    return "\n".join(lines)
