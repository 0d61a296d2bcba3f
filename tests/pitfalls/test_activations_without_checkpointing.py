"""Layer outputs that outweigh the model, told where somebody asks or memory ran out, and nowhere else."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_cell, a_run, a_witness, an_error
from torch_inspector.pitfalls.memory.activations_without_checkpointing import check

MB = 1 << 20
LARGE = a_backward(witness=a_witness(saved_nbytes=40 * MB, leaf_nbytes=2 * MB))
ASKED = a_cell(wants_report=True)
OUT_OF_MEMORY = an_error("CUDA out of memory. Tried to allocate 2.00 GiB.", kind="OutOfMemoryError")
ON_CPU = an_error("[enforce fail] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")


@pytest.mark.parametrize(
    "run",
    [
        a_run(LARGE, cell=ASKED),
        a_run(LARGE, error=OUT_OF_MEMORY),
        a_run(LARGE, error=ON_CPU),
        a_run(error=OUT_OF_MEMORY, earlier=(a_run(LARGE),)),
    ],
)
def test_told_where_memory_matters(run):
    (finding,) = check(run)
    assert (finding.line, finding.subject) == (3, "loss")
    assert "40.0 MB" in finding.message
    assert "20 times" in finding.message
    assert ("ran out" in finding.message) == (run.error is not None)


@pytest.mark.parametrize(
    "run",
    [
        a_run(LARGE),
        a_run(LARGE, error=an_error("shapes cannot be multiplied")),
        a_run(LARGE, cell=ASKED, min_nbytes=64 * MB),
        a_run(a_backward(witness=a_witness(saved_nbytes=40 * MB, leaf_nbytes=20 * MB)), cell=ASKED),
        a_run(a_backward(witness=a_witness(saved_nbytes=40 * MB, leaf_nbytes=0)), cell=ASKED),
        a_run(a_backward(witness=None), error=OUT_OF_MEMORY),
        a_run(cell=ASKED, earlier=(a_run(LARGE),)),
        a_run(error=OUT_OF_MEMORY, earlier=(a_run(LARGE), a_run(), a_run(), a_run())),
    ],
    ids=["nobody asks", "other error", "small", "large model", "no leaves", "not looked at", "cell before", "long ago"],
)
def test_silent_otherwise(run):
    assert list(check(run)) == []


def test_the_largest_of_several_is_told():
    small = a_backward(line=9, witness=a_witness(saved_nbytes=30 * MB, leaf_nbytes=2 * MB))
    (finding,) = check(a_run(small, LARGE, cell=ASKED))
    assert finding.line == 3


def test_checkpointed_blocks_and_evaluation_keep_little():
    setup = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(8))
x = torch.randn(2048, 64)
"""
    plain = "%%torchcheck\ny = x\nfor block in blocks:\n    y = y + block(y)\ny.pow(2).mean().backward()"
    with a_notebook() as notebook:
        notebook.run(setup)
        notebook.run(plain)
        notebook.run(plain.replace("block(y)", "checkpoint(block, y, use_reentrant=False)"))
        notebook.run("%%torchcheck\nwith torch.no_grad():\n    y = x\n    for block in blocks:\n        y = block(y)")
        assert [one[:2] for one in notebook.findings()] == [(1, "activations-without-checkpointing")]
