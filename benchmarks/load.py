"""`%load_ext torch_inspector` in fresh processes that have not imported torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Row, Times, time_row

_PROCESSES = 9
_CHILD = """
import json, sys
from time import perf_counter, process_time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell.run_cell("x = 1")
wall_s, cpu_s = perf_counter(), process_time()
shell.run_line_magic("load_ext", "torch_inspector")
times = process_time() - cpu_s, perf_counter() - wall_s
shell.run_cell("x = 2")
print(json.dumps([*times, [name for name in ("torch", "ipywidgets") if name in sys.modules]]))
"""


def run() -> Iterator[Row]:
    """Milliseconds; the name of the row says which of torch and ipywidgets are there after the next cell."""
    times, dragged = [], set()
    for process in range(_PROCESSES + 1):
        cpu_s, wall_s, names = _load_once()
        dragged.update(names)
        if process:  # the first may have had to compile or to read from a cold disk
            times.append(Times(cpu_s, wall_s))
    came = " and ".join(sorted(dragged)) or "no torch, no ipywidgets"
    yield time_row("load", f"%load_ext; imports {came}", times, 100.0)


def _load_once() -> tuple[float, float, list[str]]:
    done = subprocess.run([sys.executable, "-c", _CHILD], check=True, capture_output=True, text=True)
    cpu_s, wall_s, names = json.loads(done.stdout.splitlines()[-1])
    return cpu_s, wall_s, names
