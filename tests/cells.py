"""Runs cells in a fresh IPython shell with the extension loaded, and gives back what was found."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from torch_inspector.facts import Run
from torch_inspector.findings import Finding
from torch_inspector.notebook import extension


@dataclass
class Notebook:
    """A shell in which cells are run like in a notebook."""

    shell: Any
    runs: list[Run | None] = field(default_factory=list)
    errors: list[BaseException | None] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)

    @property
    def extension(self) -> extension.Extension:
        """The loaded extension."""
        return extension._loaded[id(self.shell)]

    def run(self, source: str) -> Run | None:
        """Runs one cell and gives its run."""
        session = self.extension.session
        before = session.runs[-1] if session.runs else None
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = self.shell.run_cell(source, store_history=True)
        latest = session.runs[-1] if session.runs else None
        self.runs.append(latest if latest is not before else None)
        self.errors.append(result.error_before_exec or result.error_in_exec)
        return self.runs[-1]

    def findings(self) -> list[tuple[int, str, int | None, str]]:
        """Cell index, slug, line and severity of everything found."""
        return [
            (index, finding.slug, finding.line, finding.severity)
            for index, run in enumerate(self.runs)
            if run is not None
            for finding in run.findings
        ]


@contextlib.contextmanager
def a_notebook(*, min_bytes: int | None = None) -> Iterator[Notebook]:
    """A fresh shell with the extension; nothing of either is left behind."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    # Nobody reads these tracebacks, and a full one takes longer to write than all that is tested.
    config.InteractiveShell.xmode = "Minimal"
    config.InteractiveShell.ast_node_interactivity = "last_expr"
    saved = {name: getattr(sys, name, None) for name in ("last_type", "last_value", "last_traceback", "displayhook")}
    main = sys.modules["__main__"]
    with warnings.catch_warnings():
        shell = InteractiveShell(config=config)
        notebook = Notebook(shell)
        record = lambda data, *_args, **_kwargs: notebook.published.append(data)  # noqa: E731
        setattr(shell.display_pub, "publish", record)  # noqa: B010
        extension.load(shell)
        # What is found must not depend on what else the machine does; how long looks take is measured in benchmarks.
        notebook.extension.settings.time_budget_ms = 250
        if min_bytes is not None:
            notebook.extension.settings.min_bytes = min_bytes
        try:
            yield notebook
            assert notebook.extension.session.failures.counts == {}, notebook.extension.session.failures.recent
        finally:
            extension.unload(shell)
            # It would collect garbage, of all tests so far: 0.1 s and more for each notebook.
            with mock.patch("gc.collect"):
                shell.reset(new_session=False)
            __import__("atexit").unregister(shell.atexit_operations)
            sys.modules["__main__"] = main
            for name, value in saved.items():
                setattr(sys, name, value)


def findings_in(*cells: str, slug: str = "", min_bytes: int | None = None, fails: bool | None = None) -> list[Finding]:
    """What is found in cells that are run in one fresh notebook.

    Args:
        cells: Their sources.
        slug: Of one pitfall; empty for all.
        min_bytes: The threshold of memory findings; None for the usual one.
        fails: False if each cell must come to its end, True if one must not; None if that does not matter.
    """
    with a_notebook(min_bytes=min_bytes) as notebook:
        for source in cells:
            notebook.run(source)
        failed = any(error is not None for error in notebook.errors)
        assert fails in (None, failed), notebook.errors
        found = [finding for run in notebook.runs if run is not None for finding in run.findings]
    return [finding for finding in found if slug in ("", finding.slug)]


def cells_of(path: Path) -> list[str]:
    """The cells of a program: parts begun by a `# %%` line."""
    parts = re.split(r"^# %%[^\n]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return parts[1:]
