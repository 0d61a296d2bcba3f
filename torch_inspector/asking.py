"""`torch_inspector.memory()` and `torch_inspector.holders()`: full looks at the heap, in notebooks and scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch_inspector.account import HoldersReport, MemoryReport

if TYPE_CHECKING:
    from torch_inspector.observe.followed import Followed
    from torch_inspector.observe.heap.explain import Roots

BUDGET_S = 10.0
"""Somebody has asked and waits: seconds after which what is left is counted, but not named."""
_OUTPUTS = ("_", "__", "___")


def memory(budget_s: float = BUDGET_S, shell: Any = None) -> MemoryReport:
    """Who holds the memory of all live tensors.

    Args:
        budget_s: Seconds after which the rest is counted but not named.
        shell: The IPython shell; None to ask for the one that runs, if any.
    """
    if "torch" not in sys.modules:
        return MemoryReport(notes=("torch is not imported",))
    from torch_inspector.observe.heap.explain import explain

    return explain(roots(shell), budget_s)


def holders(thing: Any, budget_s: float = BUDGET_S) -> HoldersReport:
    """Everything that keeps a tensor, a module or another object alive.

    Args:
        thing: The object itself.
        budget_s: Seconds after which the search stops.
    """
    return holders_of(thing, type(thing).__name__, budget_s)


def holders_of(thing: Any, subject: str, budget_s: float = BUDGET_S, shell: Any = None) -> HoldersReport:
    """The same with what the user calls the object."""
    if "torch" not in sys.modules:
        return HoldersReport(subject, notes=("torch is not imported",))
    from torch_inspector.observe.heap.holders import holders as search

    return search(roots(shell), thing, subject, budget_s)


def holders_of_row(path: str, budget_s: float = BUDGET_S, shell: Any = None) -> HoldersReport | None:
    """The holders of what a row of the account leads to, also where no expression does; None if no row is called so."""
    if "torch" not in sys.modules:
        return None
    from torch_inspector.observe.heap.holders import holders_of_row as search

    return search(roots(shell), path, budget_s)


def followed(path: str, shell: Any = None) -> Followed:
    """The object that a path leads to, found without running any code of the user's."""
    from torch_inspector.observe import followed as following

    if "torch" not in sys.modules:
        return following.Followed()
    return following.followed(roots(shell).names, path)


def roots(shell: Any = None) -> Roots:
    """Where a look begins: the user's variables, and what IPython keeps."""
    from torch_inspector.observe.heap.explain import Roots

    shell = _running_shell() if shell is None else shell
    if shell is None:
        return Roots(vars(sys.modules["__main__"]))
    names: Mapping[Any, Any] = shell.user_ns
    kept = [("Out", names.get("_oh")), *((name, names.get(name)) for name in _OUTPUTS), ("IPython", shell)]
    return Roots(names, tuple((label, thing) for label, thing in kept if thing is not None))


def _running_shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
