"""Every byte that torch's profiler counts is explained, and none twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.heap.scenarios import ALL
from torch_inspector.observe.saved import shows_itself

# The measurements are 47 processes of torch, which wait for each other on a busy machine.
pytestmark = pytest.mark.timeout(400)
NAMES = [scenario.__name__ for scenario in ALL]
# What their graphs saved went through hooks.
HOOKED = {"checkpoint_not_reentrant", "saved_on_cpu", "packed_by_hooks"}
ROOT = Path(__file__).parents[2]
# What a reader must find among the largest rows of some scenarios.
EXPECTED = {
    "mlp_adam": [("model[0].weight", "parameter"), ("model[0].weight.grad", "gradient"), ("data", "tensor")],
    "loss_list": [("losses[4] (its graph)", "activation")],
    "hooks_hold": [("model[0]._forward_hooks[0] (closure over seen)[0]", "hook")],
    "closure_holds": [("later (closure over cached)", "closure")],
    "generator_paused": [("running (local pool of the paused batches)", "generator")],
    "output_history": [("Out[7]", "IPython"), ("Out[3]", "IPython")],
    "cycle": [("a reference cycle, freed by the next collection", "cycle")],
    "sparse_embedding": [("table.weight.grad._values()", "gradient")],
    "loader_in_flight": [("loader.dataset.tensors[0]", "tensor")],
    "views_and_expanded": [("small", "tensor")],
    "numpy_shared": [("back.base", "tensor")],
}


@pytest.fixture(scope="module")
def measured():
    """All measurements; two processes share the scenarios."""
    command = [sys.executable, "-m", "tests.heap.truth"]
    running = [
        subprocess.Popen([*command, *NAMES[half::2]], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for half in (0, 1)
    ]
    lines = b"".join(one.communicate(timeout=300)[0] for one in running).splitlines()
    return {result["name"]: result for result in map(json.loads, lines)}


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_of_the_profiler_are_explained(measured, name):
    if name in HOOKED and not shows_itself:
        pytest.skip("this torch shows nothing of what was saved under hooks")
    result = measured[name]
    assert "error" not in result, result["error"]
    assert result["truth"] > 0
    assert result["explained"] >= 0.99 * result["truth"], result
    assert result["explained"] + result["unexplained"] <= result["truth"], result


@pytest.mark.parametrize("name", NAMES)
def test_a_second_look_counts_the_same(measured, name):
    assert measured[name]["again"] == measured[name]["explained"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_largest_have_names(measured, name):
    rows = [(path, kind) for path, kind, _ in measured[name]["rows"]]
    for expected in EXPECTED[name]:
        assert expected in rows
