"""Arrays, lists and tuples where torch wants a tensor."""
# ruff: noqa: E501 - one program a line, so that the table can be read

from typing import Any

import pytest

from tests.cells import a_notebook
from tests.fakes import a_run, an_error, an_operand
from torch_inspector.facts import ForeignFact
from torch_inspector.pitfalls.device import array_not_tensor

SLUG = "array-not-tensor"
START = """import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = np.random.rand(4, 8), np.array([0, 1, 2, 0])
net, table, crit, mse = nn.Linear(8, 3), nn.Embedding(8, 3), nn.CrossEntropyLoss(), nn.MSELoss()
scores = torch.randn(4, 3, requires_grad=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
    def forward(self, inputs):
        return self.fc(inputs)
model = Net()
class Listed(nn.Module):
    def forward(self, inputs):
        return list(inputs)
class Row(nn.Sequential):
    pass
"""
FLOAT = "dtype=torch.float32"
# The failing line, what the message names, the fix; a fix is run.
FOUND = {
    "layer": ("out = net(x)", "`x` is an array of NumPy, of float64 numbers, and `net`", f"out = net(torch.as_tensor(x, {FLOAT}))"),
    "layer of float32": ("x32 = x.astype('float32')\nout = net(x32)", "`x32`", "out = net(torch.from_numpy(x32))"),
    "slice": ("out = net(x[:2])", "`x[:2]`", f"out = net(torch.as_tensor(x[:2], {FLOAT}))"),
    "list": ("rows = x.tolist()\nout = net(rows)", "`rows` is a list of 4", f"out = net(torch.tensor(rows, {FLOAT}))"),
    "list of arrays": ("rows = list(x)\nout = net(rows)", "`rows` is a list of 4", f"out = net(torch.stack([torch.as_tensor(one, {FLOAT}) for one in rows]))"),
    "list of tensors": ("rows = [torch.rand(8) for _ in range(4)]\nout = net(rows)", "`rows` is a list of 4 tensors", "out = net(torch.stack(rows))"),
    "convolution": ("conv = nn.Conv1d(4, 2, 3)\nout = conv(x)", "`x`", f"out = conv(torch.as_tensor(x, {FLOAT}))"),
    "embedding": ("out = table(y)", "`y`", "out = table(torch.from_numpy(y))"),
    "embedding of a list": ("ids = [1, 2]\nout = table(ids)", "`ids`", "out = table(torch.tensor(ids, dtype=torch.int64))"),
    "classes": ("loss = crit(scores, y)", "`y`", "loss = crit(scores, torch.from_numpy(y))"),
    "classes as floats": ("z = y * 1.0\nloss = crit(scores, z)", "`z`", "loss = crit(scores, torch.as_tensor(z, dtype=torch.int64))"),
    "regression": ("loss = mse(scores, x[:, :3])", "`x[:, :3]`", f"loss = mse(scores, torch.as_tensor(x[:, :3], {FLOAT}))"),
    "function": ("loss = F.mse_loss(scores, x[:, :3])", "`F.mse_loss`", f"loss = F.mse_loss(scores, torch.as_tensor(x[:, :3], {FLOAT}))"),
    "recurrent": ("rnn = nn.LSTM(8, 2)\nout, state = rnn(x)", "`x`", f"out, state = rnn(torch.as_tensor(x, {FLOAT}))"),
    "result of a recurrent": ("rnn = nn.LSTM(2, 8)\nh = rnn(torch.rand(3, 2))\nout = net(h)", "`h` is a tuple of 2 tensors", "out = net(h[0])") ,
    "places": ("i = np.array([0, 2])\nout = scores.index_select(1, i)", "`i`", "out = scores.index_select(1, torch.from_numpy(i))"),
    "places in a list": ("i = [0, 2]\nout = torch.index_select(scores, 1, i)", "`i`", "out = torch.index_select(scores, 1, torch.tensor(i, dtype=torch.int64))"),
    "mask": ("m = x[:, :3] > 0.5\nout = scores.masked_select(m)", "`m`", "out = scores.masked_select(torch.from_numpy(m))"),
    "argument by name": ("out = net(input=x)", "`x`", f"out = net(input=torch.as_tensor(x, {FLOAT}))"),
    "three times": ("mha = nn.MultiheadAttention(8, 2)\nout, w = mha(x, x, x)", "`x`", f"out, w = mha(torch.as_tensor(x, {FLOAT}), torch.as_tensor(x, {FLOAT}), torch.as_tensor(x, {FLOAT}))"),
    "in a model": ("out = model(x)", "`inputs` (`x` in the call)", f"x = torch.as_tensor(x, {FLOAT})  # before model(x)"),
    "method": ("out = scores.add(x[:, :3])", "`x[:, :3]`", f"out = scores.add(torch.as_tensor(x[:, :3], {FLOAT}))"),
    "function of torch": ("out = torch.relu(x)", "`torch.relu` wants", "out = torch.relu(torch.from_numpy(x))"),
    "whole numbers": ("out = torch.bincount(y)", "`y`", "out = torch.bincount(torch.from_numpy(y))"),
    "whole numbers twice": ("out = torch.gcd(y, y)", "`y`", "out = torch.gcd(torch.from_numpy(y), torch.from_numpy(y))"),
    "whole numbers in a list": ("z = [1, 2]\nout = torch.bincount(z)", "`z`", "out = torch.bincount(torch.tensor(z))"),
    "yes and no": ("m = y > 0\nout = torch.logical_not(m)", "`m`", "out = torch.logical_not(torch.from_numpy(m))"),
    "whole numbers for weights": ("z = y.repeat(2).reshape(1, 8)\nout = net(z)", "`z`", f"out = net(torch.as_tensor(z, {FLOAT}))"),
    "whole numbers for a loss": ("loss = mse(scores[:, 0], y)", "`y`", f"loss = mse(scores[:, 0], torch.as_tensor(y, {FLOAT}))"),
    "whole numbers for floats": ("out = torch.histc(y)", "`y`", f"out = torch.histc(torch.as_tensor(y, {FLOAT}))"),
    "whole numbers for a layer without weights": ("act = nn.GELU()\nout = act(y)", "`y`", f"out = act(torch.as_tensor(y, {FLOAT}))"),
    "product": ("z = y.reshape(1, 4)\nout = torch.mm(z, scores)", "`z`", f"out = torch.mm(torch.as_tensor(z, {FLOAT}), scores)"),
    "row of layers": ("row = nn.Sequential(nn.Identity(), nn.Linear(8, 3), Listed())\nrows = list(x)\nout = row(rows)", "`rows`", f"out = row(torch.stack([torch.as_tensor(one, {FLOAT}) for one in rows]))"),
    "exact model": ("net.double()\nout = net(x)", "`x`", "out = net(torch.from_numpy(x))"),
}  # fmt: skip
SILENT = {
    "a tensor": "net(torch.rand(2, 8))",
    "own error": "raise TypeError(\"linear(): argument 'input' (position 1) must be Tensor, not numpy.ndarray\")",
    "caught": "try:\n    net(x)\nexcept TypeError:\n    pass",
    "a number called": "n = 3\nn(x)",
    "size of an array": "x.size(0)",
    "no method of arrays": "x.detach()",
    "nothing": "net(None)",
    "a list for the own layer in front": "nn.Sequential(Listed(), net)(list(torch.rand(3, 8)))",
    "an own layer behind nothing": "nn.Sequential(nn.Identity(), nn.Sequential(Listed()), net)(list(x))",
    "an array for the own layer in front": "class A(nn.Module):\n    def forward(self, v):\n        return v + 1\nRow(A(), net)(x)",
    "own class": "class A:\n    def __call__(self, v):\n        return v.size(0)\nA()(x)",
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found_with_a_fix_that_works(name):
    line, text, fix = FOUND[name]
    with a_notebook() as notebook:
        notebook.run(START)
        (finding,) = notebook.run(line).findings
        assert (finding.slug, finding.severity) == (SLUG, "hint")
        assert text in finding.message
        assert finding.fix == fix
        notebook.run(f"{finding.fix}\n{line}" if "# before" in fix else finding.fix)
        assert notebook.errors[-1] is None


@pytest.mark.parametrize(
    "made",
    ["[torch.rand(4, 8), torch.rand(4)]", "[torch.rand(4, 8), torch.rand(3, 8)]", "[torch.rand(8)] * 2",
     "(torch.rand(4, 8), torch.rand(4), torch.rand(4))"],
)  # fmt: skip
def test_several_tensors_of_which_the_text_does_not_say_what_they_are(made):
    with a_notebook() as notebook:
        notebook.run(START)
        (finding,) = notebook.run(f"several = {made}\nout = net(several)").findings
        assert finding.fix == ""
        assert "it does not join several on its own" in finding.message


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    with a_notebook() as notebook:
        notebook.run(START)
        assert [one.slug for one in notebook.run(SILENT[name]).findings if one.slug == SLUG] == []


def test_a_model_of_a_library_may_want_a_list(tmp_path, monkeypatch):
    code = "import torch\nclass Model(torch.nn.Linear):\n    def forward(self, rows):\n        return super().forward(rows)\n"
    (tmp_path / "their_models.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with a_notebook() as notebook:
        notebook.run(START + "from their_models import Model\nnet, rows = Model(8, 3), x.tolist()")
        assert notebook.run("net(rows)").findings == ()
        (finding,) = notebook.run("net(x)").findings
        assert finding.subject == "x"


def test_pandas():
    pytest.importorskip("pandas")
    with a_notebook() as notebook:
        notebook.run(START + "import pandas as pd\ndf = pd.DataFrame(x)")
        (finding,) = notebook.run("out = net(df)").findings
        assert finding.fix == f"out = net(torch.as_tensor(df.to_numpy(), {FLOAT}))"
        notebook.run(finding.fix)
        assert notebook.errors[-1] is None


def test_beside_weights_on_a_device_the_tensor_is_made_there():
    message = "linear(): argument 'input' (position 1) must be Tensor, not numpy.ndarray"
    given, net = ForeignFact("x", "array", "float32", axes=2), an_operand("net", kind="Linear", devices=("cuda:0",))
    texts: dict[str, Any] = {"expression": "net(x)", "statement": "out = net(x)", "foreign": (given,)}
    error = an_error(message, net._replace(dtype="", weight_dtype="float32"), kind="TypeError", **texts)
    (finding,) = array_not_tensor.check(a_run(error=error))
    assert finding.fix == "out = net(torch.as_tensor(x, device='cuda:0'))"
