"""CUDA where there is none; the fix is pasted and runs."""

import pytest
import torch

from tests.cells import a_notebook

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA here")
SETUP = "import torch\nfrom torch import nn\nnet, x = nn.Linear(4, 2), torch.randn(8, 4)\nclass C: pass\ncfg = C()"
CHOICE = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
CASES = {
    "net.cuda()": f"{CHOICE}\nnet.to(device)",
    "y = x.cuda(0) * 2": f"{CHOICE}\ny = x.to(device) * 2",
    "z = torch.zeros(2, device='cuda:0')": f"{CHOICE}\nz = torch.zeros(2, device=device)",
    "device = torch.device('cuda')\nnet = net.to(device)": CHOICE,
}


@pytest.mark.parametrize("cell", CASES)
def test_the_fix_runs(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(cell).findings if one.slug == "hard-coded-cuda"]
        assert (finding.severity, finding.fix) == ("hint", CASES[cell])
        assert finding.line == cell.count("\n") + 1
        assert notebook.run(finding.fix).error is None


@pytest.mark.parametrize("cell", ["net.to('meta')", "raise RuntimeError('No CUDA')", "torch.device('cuda')"])
def test_other_cells(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        assert not [one for one in notebook.run(cell).findings if one.slug == "hard-coded-cuda"]
