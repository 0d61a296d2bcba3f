"""Weights that are kept without a copy and compared, after training, with themselves."""

import pytest

from tests.cells import findings_in
from torch_inspector.observe import kept_weights

# ruff: noqa: E501
START = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
other = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(24, 4), torch.randint(0, 3, (24,))
def fit():
    for _ in range(4):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
"""
TRAIN = """
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""
EQUAL = "print([torch.equal(a, b) for a, b in zip(before, net.parameters())])"


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is found must not depend on what else the machine does."""
    monkeypatch.setattr(kept_weights, "_TIME_S", 1.0)


def found(*cells):
    return findings_in(START, *cells, slug="state-dict-alias")


@pytest.mark.parametrize(
    ("kept", "compared", "fix"),
    [
        ("before = [p.data for p in net.parameters()]", EQUAL, "before = [p.data.clone() for p in net.parameters()]"),
        ("before = [p.detach() for p in net.parameters()]",
         "print(sum((a - b).abs().sum().item() for a, b in zip(before, net.parameters())))",
         "before = [p.detach().clone() for p in net.parameters()]"),
        ("before = list(net.parameters())", "print(all(torch.allclose(a, b) for a, b in zip(before, net.parameters())))",
         "before = [p.detach().clone() for p in net.parameters()]"),
        ("before = dict(net.named_parameters())",
         "for n, p in net.named_parameters():\n    print(n, (p - before[n]).abs().max().item())",
         "before = {n: p.detach().clone() for n, p in net.named_parameters()}"),
        ("before = {n: p.data for n, p in net.named_parameters()}",
         "for n, p in net.named_parameters():\n    print(n, torch.equal(before[n], p.data))",
         "before = {n: p.data.clone() for n, p in net.named_parameters()}"),
        ("before = []\nfor p in net.parameters():\n    before.append(p.data)",
         "after = [p.data for p in net.parameters()]\nfor a, b in zip(before, after):\n    print((a == b).all())",
         "before.append(p.data.clone())"),
        ("before = net[0].weight.detach()", "print((before - net[0].weight).norm())",
         "before = net[0].weight.detach().clone()"),
        ("before = net[0].weight.detach().numpy()", "print((before == net[0].weight.detach().numpy()).all())",
         "before = net[0].weight.detach().numpy().copy()"),
        ("before = [p.data.numpy() for p in net.parameters()]",
         "import numpy as np\nprint([np.allclose(a, b.data.numpy()) for a, b in zip(before, net.parameters())])",
         "before = [p.data.numpy().copy() for p in net.parameters()]"),
        ("before = [p.view(-1) for p in net.parameters()]",
         "assert not all(torch.equal(a, b.view(-1)) for a, b in zip(before, net.parameters()))",
         "before = [p.view(-1).detach().clone() for p in net.parameters()]"),
        ("before = net.state_dict()['0.weight']", "print(torch.equal(before, net.state_dict()['0.weight']))",
         "before = net.state_dict()['0.weight'].detach().clone()"),
        ("before = net.state_dict()['2.bias']", "print((before - net[2].bias.data).abs().max())",
         "before = net.state_dict()['2.bias'].detach().clone()"),
    ],
)  # fmt: skip
def test_weights_that_are_compared_with_themselves(kept, compared, fix):
    for cells in ([f"{kept}\n{TRAIN}\n{compared}"], [f"{kept}\n{TRAIN}", compared], [kept, "fit()", compared]):
        (finding,) = found(*cells)
        assert finding.subject == "before"
        assert "compares them with themselves" in finding.message
        assert finding.fix.startswith(f"{fix}  #")
        assert findings_in(START, *[cell.replace(kept, _mended(kept, fix)) for cell in cells]) == []


def _mended(kept, fix):
    return kept.replace("before.append(p.data)", fix) if "append" in kept else fix


STATE = "before = {k: v for k, v in net.state_dict().items()}"
NORMED = "net.insert(1, nn.BatchNorm1d(8))\nnet[0].bias.requires_grad_(False)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
ALL_EQUAL = "for k, v in net.state_dict().items():\n    print(k, torch.equal(v, before[k]))"


@pytest.mark.parametrize(
    ("kept", "compared", "fix"),
    [
        (STATE, "print({k: (net.state_dict()[k] - before[k]).abs().max().item() for k in before})",
         "before = {k: v for k, v in copy.deepcopy(net.state_dict()).items()}"),
        (STATE, ALL_EQUAL, "before = {k: v for k, v in copy.deepcopy(net.state_dict()).items()}"),
        (f"{NORMED}\n{STATE}", ALL_EQUAL, "before = {k: v for k, v in copy.deepcopy(net.state_dict()).items()}"),
        ("before = {k: v.cpu() for k, v in net.state_dict().items()}",
         "sd = net.state_dict()\nprint(sum((sd[k] - before[k]).abs().sum() for k in sd))",
         "before = {k: v.cpu() for k, v in copy.deepcopy(net.state_dict()).items()}"),
        ("before = dict(net.state_dict())", ALL_EQUAL, "before = copy.deepcopy(net.state_dict())"),
        ("before = list(net.state_dict().values())",
         "print([torch.equal(a, b) for a, b in zip(before, net.state_dict().values())])",
         "before = [p.detach().clone() for p in net.state_dict().values()]"),
    ],
)  # fmt: skip
def test_what_a_state_dict_shows_in_another_container(kept, compared, fix):
    (finding,) = found(f"{kept}\n{TRAIN}\n{compared}")
    assert finding.subject == "before"
    assert finding.fix.startswith(fix)
    assert found(f"{_mended(kept, fix)}\n{TRAIN}\n{compared}") == []


@pytest.mark.parametrize(
    "cells",
    [
        # Of a copy, of another model, before any step, after the last one, known.
        [f"before = {{k: v.clone() for k, v in net.state_dict().items()}}\n{TRAIN}\n{ALL_EQUAL}"],
        [f"before = copy.deepcopy(dict(net.state_dict()))\n{TRAIN}\n{ALL_EQUAL}"],
        [f"before = {{k: v.half() for k, v in net.state_dict().items()}}\n{TRAIN}\n{ALL_EQUAL}"],
        [f"{STATE.replace('net', 'other')}\n{TRAIN}\n{ALL_EQUAL}"],
        [f"{STATE}\n{ALL_EQUAL}\n{TRAIN}"],
        [f"{TRAIN}\n{STATE}\n{ALL_EQUAL}"],
        # Of the parameters, after the last step; another line has asked for the state before.
        ["for k, v in net.state_dict().items():\n    print(k, v.shape)",
         f"{TRAIN}\nsaved = {{n: p.detach() for n, p in net.named_parameters()}}\nprint(saved['0.bias'])"],
        [f"torch.save(net.state_dict(), __import__('io').BytesIO())\n{TRAIN}",
         "best = {n: p.data for n, p in net.named_parameters()}", "print(len(best))"],
        # Saved, and averaged with what another model has learned.
        [f"{STATE}\ntorch.save(before, __import__('io').BytesIO())\n{TRAIN}"],
        [f"{STATE.replace('before', 'own')}\n{TRAIN}",
         "other.load_state_dict({k: (own[k] + v) / 2 for k, v in other.state_dict().items()})"],
    ],
)  # fmt: skip
def test_state_dicts_in_containers_that_are_right(cells):
    assert found(*cells) == []


def test_a_state_that_is_kept_is_told_of_once():
    assert len(found(STATE, TRAIN, ALL_EQUAL)) == 1
    assert len(found(f"{STATE}\n{TRAIN}", ALL_EQUAL, ALL_EQUAL)) == 1


@pytest.mark.parametrize(
    "kept",
    [
        "best = {k: v.detach() for k, v in net.state_dict().items()}",
        "best = {}\nfor k, v in net.state_dict().items():\n    best[k] = v.data",
        "def shot(model): return {k: v.detach() for k, v in model.state_dict().items()}\nbest = shot(net)",
        "class Kept: pass\nkept = Kept()\nkept.best = {k: v.detach() for k, v in net.state_dict().items()}",
    ],
)
def test_other_tensors_of_a_state_where_the_text_says_whose_they_are(kept):
    (finding,) = found(f"{kept}\n{TRAIN}")
    assert finding.subject in ("best", "kept.best")


def test_a_load_of_what_an_earlier_call_gave():
    """A later call, to look at the weights, says nothing of those that were kept."""
    findings = found(STATE.replace("before", "kept"), TRAIN, "print(len(net.state_dict()))\nnet.load_state_dict(kept)")
    assert [one.message for one in findings if "changes nothing" in one.message] != []


def test_the_call_that_gave_a_state_of_several():
    """Each call of `state_dict()` gives tensors of its own: those that are kept tell which it was."""
    (finding,) = found(f"{STATE}\nfor v in net.state_dict().values():\n    print(v.sum())\n{TRAIN}")
    assert finding.line == 1
    assert finding.fix.startswith("before = {k: v")


@pytest.mark.parametrize(
    "cells",
    [
        # Copies, before any step, after the last, of another model, of one that was made anew.
        [f"before = [p.data.clone() for p in net.parameters()]\n{TRAIN}\n{EQUAL}"],
        ["before = copy.deepcopy(list(net.parameters()))", TRAIN, EQUAL],
        [f"before = [p.data for p in net.parameters()]\n{EQUAL}\n{TRAIN}"],
        [f"{TRAIN}\nbefore = [p.data for p in net.parameters()]\n{EQUAL}"],
        [f"fit()\nbefore = [p.data for p in net.parameters()]\n{EQUAL}"],
        [f"before = list(net.parameters())\n{TRAIN}\n{EQUAL.replace('net', 'other')}"],
        ["before = [p.data for p in net.parameters()]", TRAIN, "net = copy.deepcopy(other)", EQUAL],
        # Not compared, or said to be the same.
        [f"params = list(net.parameters())\n{TRAIN}\nprint([(p - p.mean()).norm() for p in params], params[0][0] - params[0][1])"],
        [f"before = net[0].weight\n{TRAIN}\nassert torch.equal(before, net[0].weight)"],
        [f"before = net[0].weight\n{TRAIN}\nassert (before - net[0].weight).abs().max() < 1e-6"],
        # Two places of one weight.
        ["net[2].weight = nn.Parameter(torch.randn(3, 8))\ntwin = nn.Linear(8, 3)\ntwin.weight = net[2].weight",
         f"opt = torch.optim.SGD(net.parameters(), lr=0.1)\nbefore = net[2].weight\n{TRAIN}\nprint(torch.equal(before, twin.weight))"],
    ],
)  # fmt: skip
def test_weights_that_are_no_alias(cells):
    assert found(*cells) == []


ANCHOR = "anchor = [p.detach().clone() for p in net.parameters()]"
DRIFT = "print(sum((p - a).norm().item() for p, a in zip(params, anchor)))"


@pytest.mark.parametrize(
    "cells",
    [
        # The other side is a copy.
        [f"w = net[0].weight.data\nold = net[0].weight.detach().clone()\n{TRAIN}\nprint((w - old).abs().max())"],
        [f"w = net[0].weight\nref = net[0].weight.clone().detach()\n{TRAIN}", "print(torch.dist(w, ref))"],
        [f"now = net[0].weight.detach()\nstart = now.clone()\n{TRAIN}\nprint(torch.allclose(now, start))"],
        ["w = net[0].weight.data\nfor _ in range(3):\n    old = net[0].weight.data.clone()\n    fit()\n    print((w - old).norm())"],
        [f"params = list(net.parameters())\n{ANCHOR}\n{TRAIN}\n{DRIFT}"],
        [f"params = dict(net.named_parameters())\nold = {{n: p.detach().clone() for n, p in net.named_parameters()}}\n{TRAIN}",
         "for n in old:\n    print(n, (params[n] - old[n]).norm().item())"],
        # The name is used again.
        [f"w0 = net[0].weight.detach().clone()\n{TRAIN}\nprint((w0 - net[0].weight).abs().max())\nw0 = net[0].weight.detach()"],
        # The model is another by now.
        [f"w = list(net.parameters())\n{TRAIN}",
         "trained = net\nnet = copy.deepcopy(other)\nprint([(a - b).norm() for a, b in zip(w, net.parameters())])"],
        # It is known.
        [f"w = net[0].weight.data\n{TRAIN}\nprint(torch.equal(w, net[0].weight), w.data_ptr() == net[0].weight.data_ptr())"],
        [f"w = net[0].weight.data\n{TRAIN}\nprint('memory is shared:', torch.equal(w, net[0].weight))"],
        [f"w = net[0].weight\n{TRAIN}\nif w is net[0].weight:\n    print((w == net[0].weight).all())"],
        # Other parts of the weights, or all pairs of them.
        [f"w = net[0].weight\n{TRAIN}\nprint((w[0] - net[0].weight).norm(dim=1))"],
        [f"w = net[0].weight\n{TRAIN}\nprint((w.view(8, 1, 4) - net[0].weight.view(1, 8, 4)).norm(dim=2))"],
        [f"w = net[0].weight\n{TRAIN}\nfor i in (0, 2):\n    print((w.mean() - net[i].weight.mean()))"],
        [f"w = list(net.parameters())\n{TRAIN}\nprint((w[1] - list(net.parameters())[3][:1]).norm(), (w[1][:3] - w[3]).norm())"],
        [f"w = list(net.parameters())\n{TRAIN}\nprint([[torch.equal(a, b) for b in net.parameters()] for a in w])"],
    ],
)  # fmt: skip
def test_live_weights_beside_copies_and_other_weights(cells):
    assert found(*cells) == []


def test_a_cell_of_many_comparisons_takes_no_longer(monkeypatch):
    monkeypatch.setattr(kept_weights, "_TIME_S", 0.0)
    assert found(f"before = list(net.parameters())\n{TRAIN}\n{EQUAL}") == []


PARAMS = "params = list(net.parameters())\nopt = torch.optim.SGD(params, lr=0.1)\n"
WEIGHT = f"w = net[0].weight.detach()\n{TRAIN}\n"
PAIRS = "for a, b in zip(kept, net.parameters()):\n    "
CHECKS_OF_SAME = [
    "if not torch.equal(a, b): raise RuntimeError('others')",
    "if (a != b).any(): raise RuntimeError('others')",
    "if (a - b).abs().max() > 0: raise RuntimeError('others')",
    "if torch.equal(a, b): pass\n    else: raise RuntimeError('others')",
    "assert not (a != b).any(), 'others'",
    "assert not torch.ne(a, b).any()",
    "assert 1e-6 > (a - b).abs().max()",
    "assert (a - b).abs().max() == 0",
    "assert (a != b).sum() == 0",
    "assert 0 == (a != b).sum().item()",
    "assert (a == b).sum() == a.numel()",
    "assert not (a - b).abs().max() > 1e-6",
    "same = torch.equal(a, b)\n    assert same",
    "import warnings\n    if not torch.allclose(a, b): warnings.warn('others')",
]
CHECKS_OF_CHANGE = [
    "if torch.equal(a, b): print('not trained')",
    "import warnings\n    if torch.equal(a, b): warnings.warn('not trained')",
    "import warnings\n    if not (a != b).any(): warnings.warn('not trained')",
    "import warnings\n    if (a - b).abs().max() == 0: warnings.warn('not trained')",
    "same = torch.equal(a, b)\n    print(same)",
]
ASSERTED_CHANGES = [
    "assert not torch.equal(a, b)",
    "assert (a != b).any()",
    "assert (a - b).abs().max() > 1e-6",
    "assert (a != b).sum() > 0",
]


@pytest.mark.parametrize("check", CHECKS_OF_SAME)
def test_a_check_that_two_names_stand_for_the_same(check):
    assert found(f"kept = list(net.parameters())\n{TRAIN}\n{PAIRS}{check}") == []


@pytest.mark.parametrize("check", CHECKS_OF_CHANGE)
def test_a_check_that_weights_have_changed(check):
    (finding,) = found(f"kept = list(net.parameters())\n{TRAIN}\n{PAIRS}{check}")
    assert finding.subject == "kept"


@pytest.mark.parametrize("check", ASSERTED_CHANGES)
def test_an_assertion_that_weights_have_changed_which_fails(check):
    cells = (START, f"kept = list(net.parameters())\n{TRAIN}", f"{PAIRS}{check}")
    assert findings_in(*cells, slug="state-dict-alias", fails=True)


@pytest.mark.parametrize(
    "cells",
    [
        # The variable is what the optimizer trains.
        [f"{PARAMS}{TRAIN}\nprint([torch.equal(a, b) for a, b in zip(params, net.parameters())])"],
        [f"params = list(net.parameters())\nopt = torch.optim.SGD([{{'params': params}}], lr=0.1)\n{TRAIN}",
         "print([torch.equal(a, b) for a, b in zip(params, net.parameters())])"],
        [f"params = list(net.parameters())\nnn.utils.clip_grad_norm_(params, 1.0)\n{TRAIN}",
         "print([torch.equal(a, b) for a, b in zip(params, net.parameters())])"],
        # Weights that are tied.
        [f"kept = list(net.parameters())\n{TRAIN}\nprint('tied:', all(torch.equal(a, b) for a, b in zip(kept, net.parameters())))"],
        [f"w = net[0].weight\n{TRAIN}\ntie_ok = torch.equal(w, net[0].weight)"],
        # Errors of rounding.
        [f"{WEIGHT}print((w.to(torch.bfloat16).float() - net[0].weight).abs().max())"],
        [f"{WEIGHT}print(torch.allclose(net[0].weight, w.to(torch.half).float()))"],
        [f"{WEIGHT}print((w.to(dtype=torch.bfloat16).to(torch.float32) - net[0].weight).abs().max())"],
        [f"{WEIGHT}low = torch.float16\nprint((w.to(low).to(w.dtype) - net[0].weight).abs().max())"],
        [f"net.double()\nx = x.double()\n{WEIGHT}print((w.float().double() - net[0].weight).abs().max())"],
        [f"net.double()\nx = x.double()\n{WEIGHT}print((w.to(torch.float32) - net[0].weight).abs().max())"],
        [f"w = net[0].weight.detach().to('cpu', copy=True)\n{TRAIN}\nprint((w - net[0].weight).abs().max())"],
    ],
)  # fmt: skip
def test_what_is_one_on_purpose_and_errors_of_rounding(cells):
    assert found(*cells) == []


@pytest.mark.parametrize("shown", ["w.to('cpu')", "w.to(device)", "w.to(torch.float32)", "w.float()", "w.double()"])
def test_what_shows_the_same_numbers(shown):
    (finding,) = found(f"device = torch.device('cpu')\n{WEIGHT}print(({shown} - net[0].weight).abs().max())")
    assert finding.subject == "w"


INITIAL = "initial = {n: p.data for n, p in net.named_parameters()}"


@pytest.mark.parametrize(
    ("kept", "cells"),
    [
        # Nothing reads it yet.
        (INITIAL, [f"{INITIAL}\n{TRAIN}"]),
        (INITIAL, [INITIAL, "fit()", "for n, p in net.named_parameters():\n    p.data = initial[n] * 0.5"]),
        ("w_init = net[0].weight.detach()", ["w_init = net[0].weight.detach()", TRAIN]),
        (INITIAL, [f"def run():\n    fit()\n{INITIAL}\nrun()"]),
        # It is written back.
        (INITIAL, [f"{INITIAL}\n{TRAIN}\nfor n, p in net.named_parameters():\n    p.data.copy_(initial[n])"]),
        ("first = [p.data for p in net.parameters()]",
         ["first = [p.data for p in net.parameters()]", TRAIN,
          "with torch.no_grad():\n    for p, q in zip(net.parameters(), first):\n        p.copy_(q)"]),
    ],
)  # fmt: skip
def test_weights_to_go_back_to(kept, cells):
    (finding,) = found(*cells)
    written = ".copy_(" in cells[-1]
    assert ("writes them into themselves" in finding.message) is written
    assert finding.severity == ("warning" if written else "hint")
    copied = kept.replace(".data", ".data.clone()").replace(".detach()", ".detach().clone()")
    assert finding.fix.startswith(f"{copied}  #")
    assert found(*[cell.replace(kept, copied) for cell in cells]) == []


@pytest.mark.parametrize(
    "cells",
    [
        # Read while it is right; the parameters themselves; taken after the last step; bound again.
        [f"{INITIAL}\nprint(initial['0.bias'])\n{TRAIN}"],
        ["start_params = list(net.parameters())", TRAIN],
        [TRAIN, INITIAL],
        [f"def plot(values):\n    return sum(values)\nfit()\n{INITIAL}\nplot([1, 2])"],
        [f"again = False\nfit()\n{INITIAL}\nif again:\n    fit()"],
        [INITIAL, f"{TRAIN}\ninitial = None"],
        # Swapped for the averages and back, and trained on.
        [("ema = [p.data.clone() for p in net.parameters()]\nbackup = [p.data for p in net.parameters()]\n"
         "for p, e in zip(net.parameters(), ema):\n    p.data = e\nnet(x)\n"
         "for p, b in zip(net.parameters(), backup):\n    p.data = b"), TRAIN],
        # Written back before any step.
        ["first = [p.data for p in net.parameters()]\nfor p, q in zip(net.parameters(), first):\n    p.data.copy_(q)", TRAIN],
    ],
)  # fmt: skip
def test_weights_that_are_read_or_no_alias(cells):
    assert found(*cells) == []


OTHERS = """
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
def report(fit):
    print(fit)
class Trainer:
    def step(self):
        fit()
trainer = Trainer()
def learn(model):
    own = torch.optim.SGD(model.parameters(), lr=0.1)
    nn.functional.cross_entropy(model(x), y).backward()
    own.step()
"""
SAME = "print(torch.equal(net[0].weight, w0))"


@pytest.mark.parametrize(
    "lines",
    [
        f"fit()\nw0 = net[0].weight.data\nnet.train()\nreport('done')\n{SAME}",
        f"trainer.step()\nw0 = net[0].weight.data\nsched.step()\n{SAME}",
        "fit()\ninitial_w = net[0].weight.data\nnet.eval()\nnet.train()",
        f"learn(net)\nw0 = net[0].weight.data\nlearn(other)\n{SAME}",
    ],
)
def test_what_only_has_the_name_of_a_function_that_trains(lines):
    assert found(f"{OTHERS}def train():\n    fit()", lines) == []


@pytest.mark.parametrize("calls", ["learn(net)\nlearn(other)", "learn(other)\nlearn(net)", "trainer.step()"])
def test_one_line_that_steps_several_models(calls):
    assert len(found(OTHERS, f"w0 = net[0].weight.data\n{calls}\n{SAME}")) == 1
