"""The runner of the labelled cases beside the project, each case in a fork of a process that has torch already.

The runner starts a Python for every case, twice; nine tenths of its time went into importing torch.
"""

import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import IPython.core.interactiveshell  # noqa: F401  (before the fork, as what follows)
import numpy as np  # noqa: F401
import torch
import yaml  # type: ignore[import-untyped]  # noqa: F401

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"


def the_runner():
    """The module `run_cases.py`."""
    spec = importlib.util.spec_from_file_location("run_cases", CASES / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_a_fork(child):
    """Stands for the runner's `run_one`."""

    def run_one(path, options, timeout):
        with tempfile.TemporaryDirectory() as folder:
            out, log = Path(folder, "out.json"), Path(folder, "log")
            began, process = time.perf_counter(), os.fork()
            if not process:
                _be_the_child(child, (path, options), out, log, int(timeout))
            _, status = os.waitpid(process, 0)
            result = json.loads(out.read_text()) if out.exists() else None
            told = log.read_text(errors="replace")
        return result, told, os.waitstatus_to_exitcode(status), time.perf_counter() - began

    return run_one


def _be_the_child(child, given, out, log, timeout):
    signal.alarm(timeout)
    file, nothing = os.open(log, os.O_CREAT | os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ["IPYTHONDIR"] = str(Path(out).parent / "ipython")
    try:
        child(*given, out)
    finally:
        os._exit(1)


if __name__ == "__main__":
    # The first optimizer imports the compiler, which takes longer than torch itself.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    runner = the_runner()
    runner.run_one = in_a_fork(runner.child)
    sys.exit(runner.main())
