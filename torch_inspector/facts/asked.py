"""Models that one line calls in turn: what they are called, each and together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

_ELEMENT = re.compile(r"(.+)\[([^\[\]]+)\]")
_SHOWN = 3


class Asked(NamedTuple):
    """One model or several."""

    names: tuple[str, ...]
    whole: str
    """The list or dictionary that all of several are in; empty if there is none."""

    @property
    def several(self) -> bool:
        """True if there are more than one."""
        return len(self.names) > 1

    def listed(self) -> str:
        """The first of them in words: `nets[0]`, `nets[1]` and 3 more of `nets`."""
        own = [name for name in self.names if not self.whole or name.startswith(f"{self.whole}[")]
        shown = [f"`{name}`" for name in own[: _SHOWN if len(self.names) <= _SHOWN else _SHOWN - 1]]
        left = len(self.names) - len(shown)
        last = f"{left} more{f' of `{self.whole}`' if self.whole else ''}" if left else shown.pop()
        return f"{', '.join(shown)} and {last}" if shown else last

    def switched(self, mode: str) -> str:
        """`net.eval()` for each of a few, or that in a loop over these: others of their list may be meant to differ."""
        untyped = any("…" in name for name in self.names)
        if len(self.names) <= _SHOWN and not untyped:
            return "\n".join(f"{name}.{mode}()" for name in self.names)
        source = f"{self.whole}.values()" if untyped and self.whole else f"({', '.join(self.names)})"
        return f"for one_model in {source}:\n    one_model.{mode}()"


def asked_together(run: Run, calls: list[ForwardFact]) -> Asked:
    """The models of some calls of one line."""
    by_module = {call.module: _name(run, call) for call in calls}
    names = tuple(dict.fromkeys(by_module.values()))
    # Where the line says one name for all, the last may still have that of the loop which trained them.
    in_turn = len({call.name for call in calls}) == 1
    parts = [_ELEMENT.fullmatch(name) for name in names if not (in_turn and name.isidentifier())]
    owners = {part[1] if part is not None else "" for part in parts}
    return Asked(names, owners.pop() if len(owners) == 1 and len(names) > 1 else "")


def _name(run: Run, call: ForwardFact) -> str:
    return run.module_path(call.module) or call.name or call.kind
