"""A real IPython shell with the extension loaded, which `%torchcheck off` and `on` take out of the way and put back."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from benchmarks.timing import Times, clocked


@dataclass
class Notebook:
    """A shell in which cells are run and timed."""

    shell: Any
    ended: Times | None = None
    """When the last cell ended: the time on both clocks at which its `post_run_cell` began."""
    published: list[Times] = field(default_factory=list)
    """When each bundle was published since the last switch."""

    def run(self, code: str) -> None:
        """Runs a cell.

        Raises:
            RuntimeError: the cell failed, so what was timed is not what was meant.
        """
        result = self.shell.run_cell(code, store_history=True)
        if not result.success:
            raise RuntimeError("a cell of a benchmark failed")

    def run_silently(self, code: str) -> None:
        """The same without what the cell prints."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.run(code)

    def time(self, code: str, *, watched: bool, first: str = "") -> Times:
        """Times one cell in seconds, its beginning and end as the extension sees them included.

        Args:
            code: The cell.
            watched: Whether the extension looks at it.
            first: A cell that runs before, not timed: to switch costs CPython what it knew of torch's classes, and that
                is paid once for each session, not for each cell.
        """
        self.shell.run_line_magic("torchcheck", "on" if watched else "off")
        if first:
            self.run(first)
        self.published.clear()
        times = clocked(lambda: self.run(code))
        if self.published:
            print("warning: a cell that was to stay silent showed something", file=sys.stderr)
        return times

    def note_end(self, _result: object = None) -> None:
        """Notes that a cell has ended, before the extension hears of it."""
        self.ended = Times(process_time(), perf_counter())

    def note_published(self, *_args: object, **_kwargs: object) -> None:
        """Stands in for the front end."""
        self.published.append(Times(process_time(), perf_counter()))


@contextlib.contextmanager
def a_notebook() -> Iterator[Notebook]:
    """A fresh shell with torch imported on one thread and the extension loaded."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main = sys.modules["__main__"]
    notebook = Notebook(InteractiveShell(config=config))
    notebook.shell.events.register("post_run_cell", notebook.note_end)
    notebook.shell.display_pub.publish = notebook.note_published
    notebook.run("import torch\nfrom torch import nn\n_ = torch.manual_seed(0), torch.set_num_threads(1)")
    notebook.run("%load_ext torch_inspector")
    try:
        yield notebook
    finally:
        notebook.run("%unload_ext torch_inspector")
        notebook.shell.reset(new_session=False)
        sys.modules["__main__"] = main
