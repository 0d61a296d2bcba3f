"""Runs every scenario in a process of its own and prints what was allocated and what was explained, one line each.

What was allocated is told by torch's profiler, which has nothing to do with how we count.
"""

import gc
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from tests.heap.scenarios import ALL
from torch_inspector.observe import saved
from torch_inspector.observe.heap.explain import Roots, explain

# As in a notebook: up to torch 2.9 graphs that nobody saw being made are left unread.
saved.hooked.install()
# The first optimizer imports the compiler, which takes longer than torch itself: once, not in every process.
torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def allocated_by(run):
    """The variables that a scenario returns, and the bytes that are still allocated when it has ended."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        names = run()
        if gc.isenabled():
            gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    memory = sorted((e["ts"], n, e["args"]) for n, e in enumerate(events) if e.get("name") == "[memory]")
    first, last = memory[0][2], memory[-1][2]
    return names, last["Total Allocated"] - (first["Total Allocated"] - first["Bytes"])


def measure(scenario):
    """Name, bytes in truth, bytes explained, bytes counted but not explained, seconds, and the largest rows."""
    torch.manual_seed(0)
    torch.randn(1, requires_grad=True).exp().backward()
    before = explain(Roots({}), 10.0)
    names, truth = allocated_by(scenario)
    known = {key: names.pop(key) for key in ("Out", "_", "_7") if key in names}
    report = explain(Roots(names, tuple(known.items()), ours=(known,)), 10.0)
    again = explain(Roots(names, tuple(known.items()), ours=(known,)), 10.0)
    return {
        "name": scenario.__name__,
        "truth": truth,
        "explained": report.explained_bytes("cpu") - before.explained_bytes("cpu"),
        "unexplained": report.unexplained_bytes("cpu") - before.unexplained_bytes("cpu"),
        "again": again.explained_bytes("cpu") - before.explained_bytes("cpu"),
        "notes": report.notes,
        "rows": [[row.path, row.kind, row.nbytes] for row in report.rows[:12]],
        "seconds": report.duration_s,
    }


def in_a_child(scenario, measure=measure):
    """A measurement as JSON text, made in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as stream:
            text = stream.read()
        os.waitpid(child, 0)
        return text or json.dumps({"name": scenario.__name__, "died": True})
    os.close(reading)
    try:
        text = json.dumps(measure(scenario))
    except BaseException as error:  # noqa: BLE001
        text = json.dumps({"name": scenario.__name__, "error": f"{type(error).__name__}: {error}"})
    with os.fdopen(writing, "w") as stream:
        stream.write(text)
    os._exit(0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    for one in ALL:
        if not wanted or one.__name__ in wanted:
            sys.stdout.write(in_a_child(one) + "\n")
            sys.stdout.flush()
