"""Weights that each turn of a training loop keeps without a copy."""

import pytest

from tests.cells import a_notebook
from torch_inspector.observe import piled_weights

START = """
import copy
import torch
from collections import deque
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.out = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)
    def forward(self, x):
        return self.out(self.norm(self.fc(x)))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(40, 4), torch.randn(40, 1)
def fit():
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()
"""


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is found must not depend on what else the machine does."""
    monkeypatch.setattr(piled_weights, "_TIME_S", 1.0)


def found(*cells):
    with a_notebook() as notebook:
        for cell in (START, *cells):
            notebook.run(cell)
        assert not any(notebook.errors)
        runs = [run for run in notebook.runs if run]
        told = [one for run in runs for one in run.findings if one.slug == "state-dict-alias"]
    return [(one.line, one.subject, one.severity, one.fix.partition("  #")[0]) for one in told]


SHARED = {
    "{n: p.data for n, p in net.named_parameters()}": "{n: p.data.clone() for n, p in net.named_parameters()}",
    "[p.data for p in net.parameters()]": "[p.data.clone() for p in net.parameters()]",
    "[p.detach() for p in net.parameters()]": "[p.detach().clone() for p in net.parameters()]",
    "[p.detach().numpy() for p in net.parameters()]": "[p.detach().numpy().copy() for p in net.parameters()]",
    "net.fc.weight.data": "net.fc.weight.data.clone()",
    "net.fc.weight[0].detach().cpu()": "net.fc.weight[0].detach().cpu().clone()",
}
STATES = {
    "{n: p.cpu() for n, p in net.state_dict().items()}": (
        "{n: p.cpu() for n, p in copy.deepcopy(net.state_dict()).items()}"
    ),
    "{n: p for n, p in net.state_dict().items()}": "{n: p for n, p in copy.deepcopy(net.state_dict()).items()}",
}


# Of state dicts it is known which call gave them: there is no doubt.
@pytest.mark.parametrize(
    ("value", "fix", "severity"),
    [*((one, fix, "warning") for one, fix in SHARED.items()), *((one, fix, "error") for one, fix in STATES.items())],
)
def test_one_container_of_the_same_weights(value, fix, severity):
    for put in ("kept.append({})", "kept[e] = {}"):
        begin = "kept = []" if "append" in put else "kept = {}"
        told = found(f"{begin}\nfor e in range(4):\n    fit()\n    if e:\n        {put.format(value)}")
        assert told == [(5, "kept", severity, put.format(fix))]


@pytest.mark.parametrize("value", ["list(net.parameters())", "net.fc.weight", "dict(net.named_parameters())"])
def test_parameters_themselves_are_a_hint(value):
    ((line, subject, severity, _),) = found(f"kept = deque()\nfor e in range(4):\n    fit()\n    kept.append({value})")
    assert (line, subject, severity) == (4, "kept", "hint")


IN_FUNCTION = """
def run():
    h = []
    for e in range(4):
        fit()
        h.append(net.fc.weight.data)
    return h
"""
IN_METHOD = """
class Own:
    def __init__(self):
        self.h = []
    def fit_all(self):
        for e in range(4):
            fit()
            self.h.append([p.data for p in net.parameters()])
own = Own()
"""
PICTURE = """
image = torch.zeros(3, requires_grad=True)
descent, frames = torch.optim.SGD([image], lr=0.1), []
for e in range(4):
    descent.zero_grad()
    (image - 1).pow(2).sum().backward()
    descent.step()
    frames.append(image.detach().cpu())
"""


def test_in_functions_and_methods_and_of_tensors():
    assert [one[:2] for one in found(IN_FUNCTION, "kept = run()")] == [(6, "kept")]
    assert [one[:2] for one in found(IN_METHOD, "own.fit_all()")] == [(8, "own.h")]
    assert [one[:2] for one in found(PICTURE)] == [(8, "frames")]


@pytest.mark.parametrize(
    "cell",
    [
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append([p.data.clone() for p in net.parameters()])",
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append(copy.deepcopy(net.state_dict()))",
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append([p.mean().item() for p in net.parameters()])",
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append(x)",
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append([p.grad for p in net.parameters()])",
        "kept = []\nfor e in range(4):\n    fit()\nfor p in net.parameters():\n    kept.append(p.data)",
        "kept = []\nfor e in range(4):\n    fit()\n    kept = [p.data for p in net.parameters()]",
        "kept = {}\nfor e in range(4):\n    fit()\n    for n, p in net.named_parameters():\n        kept[n] = p.data",
        (
            "kept = {}\nfor e in range(3):\n    kept[e] = list(net.parameters())\n"
            "    nn.utils.clip_grad_norm_(kept[e], 1.0)\n    fit()"
        ),
        (
            "kept = {}\nfor e in range(3):\n    kept[e] = list(net.parameters())\n"
            "    opt = torch.optim.Adam(net.parameters())\n    fit()"
        ),
        "kept = [list(net.parameters()) for _ in range(3)]\nfor e in range(3):\n    fit()",
        "tied = []\nfor e in range(3):\n    tied.append(net.fc.weight.data)\nfor e in range(3):\n    fit()",
        (
            "kept = []\nfor e in range(3):\n    own = copy.deepcopy(net)\n    fit()\n"
            "    kept.append([p.data for p in own.parameters()])"
        ),
        "kept = []\nfor e in range(4):\n    fit()\n    kept.append(net.fc.weight.data)  # shares memory",
    ],
)
def test_quiet(cell):
    assert not found(cell)


@pytest.mark.parametrize(
    "value",
    [
        "{n: p.data for n, p in net.named_parameters()}",
        "[p.detach() for p in net.parameters()]",
        "[p for p in net.parameters()]",
        "net.fc.weight.data",
    ],
)
def test_the_best_so_far(value):
    cell = "def run():\n    least = 9.0\n    for e in range(6):\n        now = fit()\n        if now < least:\n"
    told = found(f"{cell}            least = now\n            best = {value}\n    return best\nkept = run()")
    assert [one[:3] for one in told] == [(7, "best", "warning")]
    quiet = value.replace(".data", ".data.clone()").replace("detach()", "detach().clone()").replace("[p ", "[p + 0 ")
    assert not found(f"{cell}            least = now\n            best = {quiet}\n    return best\nkept = run()")
    assert not found(f"{cell}            least = now\n            shown = {value}\n    return shown\nkept = run()")
    assert not found(f"{cell}            best = {value}\n            break\n    return best\nkept = run()")


TWICE = "pair = {'live': net.fc.weight.detach().numpy(), 'plot': net.fc.weight.detach().numpy()}\n"
LOGS = "def run():\n    out = {}\n    for e in range(4):\n        now = fit()\n        "


@pytest.mark.parametrize("put", ["out[e] = now", "out[e] = float(now)", "out[e] = net.fc.weight.sum().item()"])
def test_containers_that_no_statement_has_touched(put):
    assert not found(TWICE, f"{LOGS}{put}\n    return out\nh = run()")


def test_entries_are_asked_within_the_time(monkeypatch):
    asked, address = [], piled_weights._address

    def noted(one):
        asked.append(one)
        return address(one)

    monkeypatch.setattr(piled_weights, "_address", noted)
    cells = "rows = [[float(j) for j in range(64)] for _ in range(200)]\n", "for e in range(4):\n    rows.append(fit())"
    assert not found(*cells)
    assert not found(cells[0], "for e in range(4):\n    now = fit()\n    rows.append(now)")
    assert len([one for one in asked if type(one) is float]) == 204  # the first number of each row
    del asked[:]
    monkeypatch.setattr(piled_weights, "_TIME_S", 0.0)
    assert not found(cells[0], "for e in range(4):\n    now = fit()\n    rows.append(now)")
    assert not asked


@pytest.mark.parametrize(
    "cell",
    [
        "    kept = []\n    for b in (8, 4, 2):\n        kept.append((net.fc.weight.data, net.fc.bias.data))",
        "    kept = {}\n    kept[e] = net.fc.weight.data\n    kept[e + 9] = net.fc.weight.data",
        "    rows['now'] = net.fc.weight.data\n    rows['shown'] = net.fc.weight.data",
        "    kept.append(net.fc.weight.data)\n    kept.append(net.fc.weight.data)\n    fit()\n    break",
    ],
)
def test_made_anew_or_of_one_turn(cell):
    assert not found(f"kept, rows = [], {{}}\nfor e in range(4):\n    fit()\n{cell}")


def test_a_copy_of_each_part():
    told = found("kept = []\nfor e in range(4):\n    fit()\n    kept.append((net.fc.weight.data, net.fc.bias))")
    assert told == [
        (4, "kept", "warning", "import copy\nkept.append((net.fc.weight.data.clone(), copy.deepcopy(net.fc.bias)))")
    ]


TAKEN = """
ema = [p.detach().clone() for p in net.parameters()]
for e in range(6):
    fit()
    if e % 2:
        {}
"""


@pytest.mark.parametrize(
    "lines",
    [
        [
            "backup = [p.data for p in net.parameters()]",
            "for p, b in zip(net.parameters(), ema): p.data = b",
            "for p, b in zip(net.parameters(), backup): p.data = b",
        ],
        ["snapshot = net.fc.weight.detach()", "rank = torch.linalg.matrix_rank(snapshot).item()"],
        ["snap = [p.data for p in net.parameters()]", "best_vec = torch.cat([s.flatten() for s in snap])"],
        ["best['w'] = net.fc.weight.detach()", "size = best['w'].norm().item()"],
    ],
)
def test_a_second_name_that_its_turn_uses_up(lines):
    assert not found("best = {}", TAKEN.format("\n        ".join(lines)))
    if len(lines) == 2:
        name = lines[0].partition(" = ")[0]
        assert [one[1] for one in found("best = {}", TAKEN.format(lines[0]) + f"kept = {name}")] == [name]


def test_a_second_name_that_a_function_uses_up():
    restore = "def restore():\n    for p, b in zip(net.parameters(), backup): p.data = b"
    take = "backup = [p.data for p in net.parameters()]"
    assert not found(restore, TAKEN.format(f"{take}\n        restore()"))
    assert [one[1] for one in found(TAKEN.format(take))] == ["backup"]


SWAP = """
for e in range(6):
    fit()
    if {}:
        snapshot = net.fc.weight.data
        {}
print(snapshot)"""


@pytest.mark.parametrize(
    ("test", "line"),
    [
        ("e % 2", "net.fc.weight.data = snapshot + 1\n        net.fc.weight.data = snapshot"),
        ("e % 2", "net.fc.weight.data = torch.sign(snapshot)"),
        ("e % 2", "nn.utils.vector_to_parameters(torch.zeros(99), net.fc.parameters())"),
        ("e == 5", ""),
        ("e == 6 - 1 and x is not None", ""),
        ("e % 2", "\nsnapshot = net.fc.weight.detach().clone()"),
    ],
)
def test_a_second_name_with_other_weights_meanwhile_or_in_the_last_turn(test, line):
    assert not found(SWAP.format(test, line))


@pytest.mark.parametrize(
    ("test", "line"),
    [("e == 4", ""), ("e % 2", ""), ("e % 2 == 0", "pass\n    else:\n        net.fc.weight.data = snapshot")],
)
def test_a_second_name_of_weights_that_are_trained_on(test, line):
    assert [one[1] for one in found(SWAP.format(test, line))] == ["snapshot"]


def test_classes_are_not_asked_by_way_of_their_metaclass():
    stranger = """\
class Meta(type):
    asked = []
    def __getattribute__(cls, name):
        Meta.asked.append(name) if name in ("__name__", "__mro__") else None
        return super().__getattribute__(name)
class Odd(metaclass=Meta):
    pass
odd = Odd()
Meta.asked.clear()"""
    trainer = """\
class Trainer:
    def __init__(self):
        self.kept = []
    def fit(self):
        for e in range(4):
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
            self.kept.append(net.fc.weight.data)
trainer = Trainer()
trainer.fit()"""
    assert found(stranger, trainer, "assert not Meta.asked, Meta.asked")
