"""The labelled cases that lie beside the project, where they do: no correct program gives an alarm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
RUNNER = Path(__file__).with_name("run_shared_cases.py")
# The cases of the kinds that the pitfalls of this version cover.
COVERED = ("001", "010", "021", "022", "024", "037", "042", "060", "078")

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not there")


def run_cases(*names: str) -> subprocess.CompletedProcess[str]:
    """Runs cases with the extension through their own runner; it ends with 0 if all behaved as labelled."""
    command = [sys.executable, str(RUNNER), "--ext", *names]
    env = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=CASES, env=env, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.timeout(420)
def test_correct_programs_give_no_alarm():
    done = run_cases("negative")
    assert done.returncode == 0, done.stdout[-4_000:]


@pytest.mark.timeout(420)
def test_reported_problems_of_our_kinds_are_found():
    names = [str(path) for path in sorted((CASES / "positive").glob("*.py")) if path.name.startswith(COVERED)]
    done = run_cases(*names)
    assert done.returncode == 0, done.stdout[-4_000:]
