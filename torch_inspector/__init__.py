"""Live diagnostics for PyTorch in notebooks: `%load_ext torch_inspector`.

Importing this package imports neither torch nor IPython; they come when they are needed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from torch_inspector import own_builtins

own_builtins.keep(__path__[0])

from torch_inspector.recent import last_run, runs  # noqa: E402  (the modules from here on have them)

if TYPE_CHECKING:
    from torch_inspector.account import HoldersReport, MemoryReport
    from torch_inspector.views.widget import RunPanel
    from torch_inspector.watching import WatchedRun

__version__ = "0.1.0"
__all__ = [
    "explain",
    "holders",
    "last_run",
    "load_ipython_extension",
    "memory",
    "panel",
    "runs",
    "unload_ipython_extension",
    "watch",
]


def load_ipython_extension(shell: Any) -> None:
    """Starts to look at every cell: `%load_ext torch_inspector`."""
    from torch_inspector.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Stops, and puts back everything that was wrapped: `%unload_ext torch_inspector`."""
    from torch_inspector.notebook.extension import unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where JupyterLab's tools for developers find the built sidebar."""
    return [{"src": "labextension", "dest": "torch-inspector"}]


def watch() -> AbstractContextManager[WatchedRun]:
    """Looks at the code of a `with` block, outside notebooks too.

    ```python
    with torch_inspector.watch() as run:
        train()
    for finding in run.findings:
        print(finding.line, finding.message)
    ```
    """
    import sys

    from torch_inspector.watching import start

    return start(sys._getframe(1))


def memory() -> MemoryReport:
    """Who holds the memory of all live tensors: rows of path, kind, device and bytes, every byte in one row only."""
    from torch_inspector import asking

    return asking.memory()


def holders(thing: Any) -> HoldersReport:
    """Everything that keeps a tensor, a module or another object alive, the shortest way first."""
    from torch_inspector import asking

    return asking.holders(thing)


def panel() -> RunPanel:
    """The panel of the latest cell that had one, as a widget that follows the next ones: for a `VBox` of your own.

    Raises:
        RuntimeError: the extension is not loaded here.
        ImportError: anywidget is not installed.
    """
    from torch_inspector.notebook.extension import panel_here

    return panel_here()


def explain(slug: str) -> str:
    """The page of a pitfall as Markdown.

    Raises:
        ValueError: no pitfall has this slug; the message names the nearest one.
    """
    from torch_inspector.pitfalls import find_pitfall

    return find_pitfall(slug).page.text
