"""An `eval()` that a helper's `train()` undoes before the module is asked."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 2))
batches = [(torch.randn(40, 6), torch.randint(0, 2, (40,))) for _ in range(4)]
def process(model, batch{default}):
    {mode}
    return model(batch)
def test(model):
    model.eval()
    {before}
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += (process(model, x).argmax(-1) == y).sum().item()
    return hits"""
QUIET = {
    "the mode is handed on": (", training=False", "model.train(training)", "pass"),
    "asked in between": ("", "model.train()", "model(batches[0][0])"),
    "nothing is set": ("", "pass", "pass"),
}


def test_train_in_a_helper_undoes_eval():
    setup = SETUP.format(default=", training=True", mode="model.train(training)", before="pass")
    (one,) = findings_in(setup, "print(test(net))", slug="eval-missing", fails=False)
    assert "after `train()` in line 7 had undone `eval()`" in one.message
    assert "in place of train() in line 7" in one.fix


@pytest.mark.parametrize("case", QUIET)
def test_what_is_left_alone(case):
    default, mode, before = QUIET[case]
    setup = SETUP.format(default=default, mode=mode, before=before)
    assert not findings_in(setup, "print(test(net))", slug="eval-missing", fails=False)


@pytest.mark.parametrize(
    ("name", "told"), [("evaluate", True), ("validate_epoch", True), ("predict_with_dropout", False)]
)
def test_a_function_that_measures_in_train_mode(name, told):
    setup = f"""\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.4), nn.Linear(16, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(40, 6), torch.randint(0, 2, (40,))
def {name}(model):
    model.train()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()"""
    train = """\
net.train()
for _ in range(3):
    sgd.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    sgd.step()"""
    assert bool(findings_in(setup, train, f"print({name}(net))", slug="eval-missing", fails=False)) == told


LEFT_OFF = """\
def evaluate():
    torch.set_grad_enabled(False)
    {mode}
    score = F.cross_entropy(mlp(x), y).item()
    mlp.train()
    return score
def fit():
    for epoch in range(2):
        for _ in range(4):
            loss = F.cross_entropy(mlp(x), y)
            optim.zero_grad(); loss.backward(); optim.step()
        evaluate()"""
MLP = """\
import torch
import torch.nn.functional as F
from torch import nn
x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
mlp = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
optim = torch.optim.Adam(mlp.parameters())
"""


@pytest.mark.parametrize("cells", [("fit()",), ("try:\n    fit()\nexcept RuntimeError:\n    pass", "fit()")])
def test_a_training_pass_after_gradients_were_left_off_is_no_evaluation(cells):
    code = MLP + LEFT_OFF.format(mode="mlp.eval()")
    assert findings_in(code, *cells, "torch.set_grad_enabled(True)", slug="eval-missing", fails=True) == []


def test_an_evaluation_in_train_mode_that_leaves_gradients_off_is_told():
    code = MLP + LEFT_OFF.format(mode="pass")
    (one,) = findings_in(code, "fit()", "torch.set_grad_enabled(True)", slug="eval-missing", fails=True)
    assert one.line == 10


BOTH_PHASES = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.4), nn.Linear(16, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(40, 6), torch.randint(0, 2, (40,))
batches = [(torch.randn(40, 6), torch.randint(0, 2, (40,))) for _ in range(3)]
"""
EPOCHS = """\
for epoch in range(2):
    net.train()
    for x, y in batches:
        sgd.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        sgd.step()
    net.eval()
    with torch.no_grad():
        hits = 0
        for x, y in batches:
            net.train()
            hits += (net(x).argmax(1) == y).sum().item()"""


@pytest.mark.parametrize("again", ["            net.train()\n", ""])
def test_train_in_the_lines_that_measure(again):
    cell = (
        EPOCHS
        if again
        else EPOCHS.replace("            net.train()\n", "").replace("hits = 0", "hits = 0; net.train()")
    )
    (one,) = findings_in(BOTH_PHASES, cell, slug="eval-missing", fails=False)
    assert f"after `train()` in line {11 if again else 9} had undone `eval()`" in one.message
    assert one.severity == "hint"
    mended = cell.replace("            net.train()\n", "").replace("; net.train()", "")
    assert not findings_in(BOTH_PHASES, mended, slug="eval-missing", fails=False)


@pytest.mark.parametrize(
    "cell",
    [
        EPOCHS.replace("            net.train()", "            net.train()  # Monte Carlo"),
        # Asked in eval mode, then in train mode; many answers to one question; no training phase of its own.
        EPOCHS.replace("hits = 0", "hits = 0; net(x)"),
        # The same by another way; batch statistics are taken anew.
        EPOCHS.replace("hits = 0", "hits = 0; net.forward(x)"),
        EPOCHS.replace("hits = 0", "hits = 0; net[0](x)"),
        EPOCHS.replace("hits = 0", "hits = 0; nn.Sequential(net).eval()(x)"),
        EPOCHS.replace("hits += (net(x).argmax(1) == y).sum().item()", "net(x)") + "\nprint(hits)",
        EPOCHS.replace("net(x).argmax", "sum(net(x) for _ in range(8)).argmax"),
        EPOCHS[EPOCHS.index("    net.eval()") :].replace("    net.eval()", "if True:\n    net.eval()", 1),
    ],
)
def test_train_that_is_meant(cell):
    train = EPOCHS[: EPOCHS.index("    net.eval()")]
    assert not findings_in(BOTH_PHASES, train, cell, slug="eval-missing", fails=False)


START = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(6, 16), nn.{layer}, nn.Linear(16, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(40, 6), torch.randn(40, 2)
net(x).sub(y).pow(2).mean().backward()
sgd.step()"""
AWAKE = """\
net.eval()
def {name}(model, x):
    model.train()
    with torch.no_grad():
        answers = {calls}
    {after}
    return answers
print({name}(net, x))"""
ONE = "model(x).mean()"


@pytest.mark.parametrize(
    ("name", "calls", "after", "count"),
    [
        ("mc_dropout", "torch.stack([model(x) for _ in range(3)])", "pass", 0),
        ("spread", "model(x) - model(x)", "pass", 0),
        ("spread", ONE, "model.eval()", 0),
        ("train_loss", ONE, "pass", 0),
        ("score", ONE, "pass", 1),
        ("both", "model(x[:20]) - model(x[20:])", "pass", 1),
    ],
)
def test_a_function_that_wakes_the_module_and_asks_it(name, calls, after, count):
    cell = AWAKE.format(name=name, calls=calls, after=after)
    assert len(findings_in(START.format(layer="Dropout(0.4)"), cell, slug="eval-missing", fails=False)) == count


@pytest.mark.parametrize(
    ("name", "after", "told"),
    [
        ("predict", "model.eval()", ["hint"]),
        ("validate_fit", "pass", ["hint"]),
        ("mc_dropout", "model.eval()", []),
        ("predict", "model.eval()  # running_mean follows the new data", ["hint"]),
        ("predict", "print(model[1].running_mean.mean())", []),
        ("predict", "'running statistics'; model.eval()", ["hint"]),
        ("batch_norm_predict", "model.eval()", []),
        ("adapted", "model.eval()", []),
        ("subnet", "model.eval()", ["hint"]),
    ],
)
def test_batch_statistics_move_whatever_the_function_is_called(name, after, told):
    cell = AWAKE.format(name=name, calls=ONE, after=after)
    found = findings_in(START.format(layer="BatchNorm1d(16)"), cell, slug="eval-missing", fails=False)
    assert [one.severity for one in found] == told


@pytest.mark.parametrize(
    ("cell", "plain", "normed"),
    [
        ("with torch.no_grad(): print(net(x).shape)", [], ["hint"]),
        ("net(x).shape", [], ["hint"]),
        ("with torch.no_grad(): print(net(x)[0].size())", [], ["hint"]),
        ("with torch.no_grad():\n    net(x)\nprint('ran')", [], ["hint"]),
        ("with torch.no_grad():\n    out = net(x)\n    print(out.shape)", ["hint"], ["hint"]),
        ("with torch.no_grad():\n    out = net(x)\n    print(out.shape, out.mean())", ["warning"], ["warning"]),
    ],
)
def test_a_pass_of_which_nobody_wants_the_answer(cell, plain, normed):
    for layer, expected in (("Dropout(0.4)", plain), ("BatchNorm1d(16)", normed)):
        found = findings_in(START.format(layer=layer), cell, slug="eval-missing", fails=False)
        assert [one.severity for one in found] == expected


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("net[1].momentum = 0.01", 1),
        ("print(net[1].running_mean.mean())", 1),
        ("other = nn.BatchNorm1d(16, track_running_stats=True)", 1),
        ("def mc_predict(model, x): return model(x)", 1),
        ("# running statistics of the new data are wanted", 1),
        ("print('MC dropout')", 1),
        ("'''Uncertainty by samples,\nin two lines.'''", 1),
    ],
)
def test_code_of_other_lines_does_not_say_that_noise_is_wanted(line, count):
    cell = f"{line}\n{AWAKE.format(name='predict', calls=ONE, after='pass')}"
    found = findings_in(START.format(layer="BatchNorm1d(16)"), cell, slug="eval-missing", fails=False)
    assert len(found) == count


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("model.train()  # dropout stays on", 0),
        ("# on purpose\n    model.train()", 0),
        ("model.train()  # the mode", 1),
        ("rows = 3  # dropout stays on\n    model.train()", 1),
    ],
)
def test_a_remark_at_the_line_that_wakes_the_module(line, count):
    cell = AWAKE.format(name="predict", calls=ONE, after="pass").replace("model.train()", line)
    assert len(findings_in(START.format(layer="Dropout(0.4)"), cell, slug="eval-missing", fails=False)) == count


WRAPPED = """\
import copy
class Around:
    def __init__(self, model):
        self.model, self.state, self.path = model, copy.deepcopy(model.state_dict()), "net.pt"
        torch.save(model.state_dict(), self.path)
    def back(self):
        self.model.load_state_dict(self.state)
    def init(self):
        for part in self.model.modules():
            if isinstance(part, nn.BatchNorm1d):
                nn.init.ones_(part.weight)
    def {name}(self, x):
        {wake}
        return self.model(x).mean()
net.eval()
around = Around(net)
with torch.no_grad():
    print(around.{name}(x))"""
PICKED = "for part in self.model.modules():\n            if isinstance(part, nn.{}): part.{}()"


@pytest.mark.parametrize(
    ("name", "wake", "count"),
    [
        ("ask", "self.model.train()", 1),
        ("__call__", "self.model.train()", 0),
        ("ask", "self.back(); self.model.train()", 0),
        ("ask", "self.model.train(); self.model.load_state_dict(self.state)", 0),
        ("ask", "self.model.train(); self.model.load_state_dict(torch.load(self.path))", 1),
        ("ask", f"self.model.train()\n        {PICKED.format('Dropout', 'eval')}", 0),
        ("ask", f"self.model.train()\n        {PICKED.format('BatchNorm1d', 'requires_grad_')}", 0),
        ("ask", f"self.model.train()\n        {PICKED.format('Linear', 'requires_grad_')}", 1),
    ],
)
def test_what_adapts_a_model_is_told_by_what_it_does(name, wake, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = WRAPPED.format(name=name, wake=wake)
    assert len(findings_in(START.format(layer="BatchNorm1d(16)"), cell, slug="eval-missing", fails=False)) == count


ASKED = """\
class {kind}:
    def wake(self, model): model.train()
    def ask(self, model, x):
        self.wake(model)
        return model(x).mean()
def asked(x):
    return {kind}().ask(net, x)
with torch.no_grad():
    net.eval(); {answer} = asked(x)"""


@pytest.mark.parametrize(
    ("kind", "answer", "count"), [("Ask", "one", 1), ("MonteCarlo", "one", 0), ("Ask", "sample", 0)]
)
def test_the_class_and_the_statement_that_asks_may_say_it(kind, answer, count):
    cell = ASKED.format(kind=kind, answer=answer)
    assert len(findings_in(START.format(layer="Dropout(0.4)"), cell, slug="eval-missing", fails=False)) == count


@pytest.mark.parametrize(("turns", "count"), [("mc_turns", 0), ("turns", 1)])
def test_the_loop_around_the_statement_may_say_it(turns, count):
    cell = AWAKE.format(name="predict", calls=ONE, after="pass").replace("print(predict(net, x))", "")
    loop = f"{turns} = [x, -x]\nfor row in {turns}:\n    net.eval()\n    print(predict(net, row))"
    found = findings_in(START.format(layer="Dropout(0.4)"), cell, loop, slug="eval-missing", fails=False)
    assert len(found) == count


def test_batch_statistics_on_purpose_leave_dropout_a_slip():
    start = START.format(layer="Dropout(0.4), nn.BatchNorm1d(16)")
    cell = AWAKE.format(name="batch_norm_predict", calls=ONE, after="pass")
    assert len(findings_in(start, cell, slug="eval-missing", fails=False)) == 1


def test_a_pass_that_hooks_look_at():
    hook = "seen = []\nhandle = net[1].register_forward_hook(lambda layer, given, out: seen.append(out))"
    cell = f"{hook}\nwith torch.no_grad():\n    net(x)\nprint(len(seen))"
    (one,) = findings_in(START.format(layer="Dropout(0.4)"), cell, slug="eval-missing", fails=False)
    assert one.severity == "warning"
