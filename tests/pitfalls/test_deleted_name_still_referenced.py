"""Deletions that free nothing, and those that do or are not meant to."""

import pytest

from tests.cells import findings_in

SLUG = "deleted-name-still-referenced"
START = """\
import gc, functools
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
x = torch.randn(1024, 512)
kept = []
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
    def fit(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""
GC = "\ngc.collect();"


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("before", "deletion", "subject", "holder"),
    [
        ("opt = torch.optim.SGD(model.parameters(), lr=0.1)", "del model", "model", "opt"),
        ("opt = torch.optim.SGD(model.parameters(), lr=0.1)", "model = None", "model", "opt"),
        (
            "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nplan = torch.optim.lr_scheduler.StepLR(opt, 1)",
            "del model, opt" + GC,
            "model",
            "plan",
        ),
        ("loss = model(x).mean()\nloss.backward()", "del model" + GC, "model", "loss"),
        ("loss = model(x).mean()\nloss.backward()", "del model", "model", "loss"),
        ("scores = {'norm': lambda m=model: m[0].weight.norm()}", "del model", "model", "scores"),
        (
            "y = torch.zeros(1024)\nloader = DataLoader(TensorDataset(x, y))\nfor row, _ in loader:\n    pass",
            "del x, y" + GC,
            "x",
            "loader",
        ),
        ("score = functools.partial(lambda m, x: m(x), model)", "del model" + GC, "model", "score"),
        ("score = (lambda m: lambda x: m(x))(model)", "del model", "model", "score"),
        ("score = (lambda m: lambda x: m(x))(model)", "del model\nprint(x.std().item())", "model", "score"),
        ("score = (lambda m: lambda x: m(x))(model)", "print(f'{float(x.mean()):.2f}'); del model", "model", "score"),
        ("score = (lambda m: lambda y: m + y)(x)", "few = x[:4].detach().clone(); del x\nlen(few)", "x", "score"),
        ("big = x * 2\nscore = (lambda m: lambda y: m + y)(big)", "big = None" + GC, "big", "score"),
        (
            "w = torch.ones(512, 512, requires_grad=True)\nh = torch.relu(x @ w)\nloss = (h * h).sum()",
            "del h" + GC,
            "h",
            "loss",
        ),
        ("trainer = Trainer(model)", "del model" + GC, "model", "trainer.model"),
        ("half = x[:512]", "del x" + GC, "x", "half"),
        (
            "trainer = Trainer(model)",
            "if True:\n    trainer.model = None\n    del model" + GC,
            "model",
            "trainer.optimizer",
        ),
    ],
)
def test_the_holder_is_named(before, deletion, subject, holder):
    findings = found(before, deletion)
    finding = next(f for f in findings if f.subject == subject)
    assert f"`{holder}` holds them" in finding.message
    assert "MB" in finding.message
    assert holder.partition(".model")[0] in finding.fix


def test_numpy_shares_the_memory():
    (finding,) = found("array = x.numpy()", "del x" + GC)
    assert (finding.subject, finding.severity) == ("x", "hint")
    assert "`array` holds them (it is the same memory)" in finding.message
    assert "is deleted, and all " in finding.message


def test_line_and_severity():
    (finding,) = found("opt = torch.optim.SGD(model.parameters(), lr=0.1)", "\nprint(1)\ndel model\n" + GC)
    assert (finding.line, finding.severity) == (3, "warning")
    measured = "del model\ngc.collect()\nprint(torch.cuda.memory_allocated() / 2**20, f'{len(kept):.1f} MB')"
    (finding,) = found("opt = torch.optim.SGD(model.parameters(), lr=0.1)", measured)
    assert finding.severity == "warning"
    asked = "del model\nif torch.cuda.is_available():\n    torch.cuda.empty_cache()\n    torch.cuda.ipc_collect()"
    (finding,) = found("opt = torch.optim.SGD(model.parameters(), lr=0.1)", asked)
    assert (finding.line, finding.severity) == (1, "warning")
    (finding,) = found("opt = torch.optim.SGD(model.parameters(), lr=0.1)", "del model")
    assert finding.severity == "hint"


def test_new_memory_in_the_same_cell_is_not_taken_for_the_old():
    rebuild = (
        "del model, opt\ngc.collect()\nmodel = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))"
    )
    rebuild += "\nopt = torch.optim.SGD(model.parameters(), lr=0.1)"
    assert found("opt = torch.optim.SGD(model.parameters(), lr=0.1)", *[rebuild] * 4) == []
    assert found(*["del x\ngc.collect()\nx = torch.randn(1024, 512)"] * 4) == []
    moved = "del model, opt\ngc.collect()\ntrainer.model = nn.Sequential(nn.Linear(512, 1024), nn.Linear(1024, 512))"
    assert found("trainer = Trainer(nn.Linear(1, 1))\nopt = 1", moved) == []
    assert found("y = x.clone()", "del x\ngc.collect()\ny = torch.randn(1024, 512)\nz = torch.randn(1024, 512)") == []


@pytest.mark.parametrize(
    "cells",
    [
        ["del model" + GC],
        ["del x"],
        ["opt = torch.optim.SGD(model.parameters(), lr=0.1)", "del model, opt" + GC],
        ["opt = torch.optim.SGD(model.parameters(), lr=0.1)", "del opt, model"],
        ["loss = model(x).mean()\nloss.backward()", "del model, loss" + GC],
        ["loss = model(x).mean().item()", "del model" + GC],
        ["y = torch.zeros(1024)\nloader = DataLoader(TensorDataset(x, y), batch_size=8)", "del x, y" + GC],
        ["y = torch.zeros(1024)\nloader = DataLoader(TensorDataset(x, y))\nfor row, _ in loader:\n    pass", "del x"],
        ["kept.append(x)\ndel x" + GC],
        ["kept.append(x)", "del x" + GC + "\nz = torch.zeros(4)"],
        ["kept.append(x)", "del x"],
        ["kept.append(x)", "few = x[:4].clone(); del x\ngc.collect();"],
        ["score = lambda r=x: r.mean()", "del x\nprint(score())"],
        ["score = lambda r=x: r.mean()", "few = kept + [1]\ndel x"],
        ["score = lambda r=x: r.mean()", "few = x[:4]\ndel x"],
        ["score = lambda r=x: r.mean()", "few = x[:4].clone(); del x\nscore();"],
        ["y = x", "del x" + GC],
        ["kept = (x, 1)", "del x" + GC + "\nz = torch.zeros(4)"],
        ["kept.append(x)", "del x, kept" + GC],
        ["kept.append(model)", "del model" + GC],
        ["body = model[0]", "del model" + GC],
        ["weights = model.state_dict()", "del model" + GC],
        ["net = nn.Sequential(model, nn.ReLU())", "del model" + GC],
        ["net = model", "del model" + GC],
        ["trainer = Trainer(model)", "del model"],
        ["trainer = Trainer(model)\ndel model\ntrainer.fit(x)"],
        [
            "w = torch.ones(512, 512, requires_grad=True)\nh = torch.relu(x @ w)\nloss = (h * h).sum()",
            "del h",
            "loss.backward()",
        ],
        ["model = None\nmodel = nn.Linear(1024, 1024)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)"] * 3,
        ["for part in x.split(100):\n    y = part * 2\n    kept.append(y)\n    del y" + GC],
        ["def free():\n    global model\n    del model\n    gc.collect()", "free()"],
        ["best = {k: v.clone() for k, v in model.state_dict().items()}", "del model" + GC],
        ["x[:4]", "del x" + GC],
    ],
)
def test_freed_or_kept_on_purpose(cells):
    assert found(*cells) == []


WATCHER = """\
class Watcher:
    def __init__(self, layer):
        self.maps = []
        self.handle = layer.register_forward_hook(self.keep)
    def keep(self, layer, args, output):
        self.maps.append(output.detach())
    def close(self):
        self.handle.remove()
watcher = Watcher(model[0])
with torch.no_grad():
    model(x)"""


@pytest.mark.parametrize("deletion", ["del watcher", "watcher = None" + GC])
def test_a_hook_holds_what_collects(deletion):
    (finding,) = found(WATCHER, deletion)
    assert "`model` holds them (a hook of it was made with it" in finding.message
    assert found(WATCHER, finding.fix, deletion) == []


@pytest.mark.parametrize(
    "cells",
    [
        [WATCHER, "watcher.close()\ndel watcher"],
        [WATCHER.replace("self.maps.append(output.detach())", "pass"), "del watcher"],
        [WATCHER, "maps = watcher.maps", "del watcher"],
    ],
)
def test_hooks_that_hold_nothing_alone(cells):
    assert found(*cells) == []


SCHEDULED = "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nplan = torch.optim.lr_scheduler.StepLR(opt, 1)"
SCORERS = "scorers = {k: functools.partial(torch.add, x, k) for k in (1, 2)}\n"


@pytest.mark.parametrize(
    ("before", "deletion", "named", "fix"),
    [
        (SCHEDULED, "del model", "`opt` holds them", "del opt, plan"),
        (SCORERS + "for k, fn in scorers.items():\n    fn(1);", "del x", "and so does `fn`", "del scorers, fn"),
        (SCORERS + "a, b = scorers[1], [scorers[2]]", "del x", "and so do `a` and `b`", "del scorers, a, b"),
        (
            SCORERS + "a = b = c = scorers[1]",
            "x = None",
            "and so do `a`, `b` and 1 more",
            "del scorers, a, b  # and 1 more",
        ),
        (SCORERS + "other = functools.partial(torch.add, x * 2)", "del x", "`scorers` holds them", "del scorers"),
    ],
)
def test_all_that_is_to_be_deleted_is_named(before, deletion, named, fix):
    (finding,) = found(before, deletion)
    assert named in finding.message
    assert finding.fix == fix
    assert found(before, f"{deletion}\n{fix.replace('  # and 1 more', ', c')}") == []


MAPS = """\
def compare(reference, layer, args, output): (output - reference).square().mean()
with torch.no_grad():
    maps = [model[:n](x) for n in (1, 2)]
handle = """
ARGUMENTS = {
    "partial": "model[0].register_forward_hook(functools.partial(compare, maps[0]))",
    "keyword": "model[0].register_forward_hook(functools.partial(lambda *given, ref: None, ref=maps[1]))",
    "default": "model[0].register_forward_hook(lambda layer, args, out, ref=maps[0]: compare(ref, layer, args, out))",
    "part of it": "model[0].register_forward_hook(functools.partial(compare, maps[0][:1000]))",
    "parameter": "model[0].weight.register_hook(lambda grad, ref=maps[0]: grad * ref.mean())",
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_hook_holds_an_argument(argument):
    (finding,) = found(MAPS + ARGUMENTS[argument], "del maps")
    assert (finding.subject, finding.severity) == ("maps", "hint")
    assert "`model` holds them (a hook of " in finding.message
    assert found(MAPS + ARGUMENTS[argument], finding.fix, "del maps") == []
    assert found(MAPS + ARGUMENTS[argument], "handle.remove()\ndel maps") == []
    assert found(MAPS + ARGUMENTS[argument], "maps[0].mean()", "n = 3\ndel maps") == []


def test_the_tuple_of_a_data_set_takes_no_del():
    (finding,) = found("data = TensorDataset(x, torch.zeros(1024))\nfor row in data: pass\ndel row", "del x" + GC)
    assert finding.fix == "del data"


ALIVE = """
def alive():
    tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and one.numel() > 1000]
    return sum({one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}.values())
big = torch.randn(1024, 1024)
"""


@pytest.mark.parametrize(
    ("before", "deletion", "also", "fix"),
    [
        ("few = big[:400]", "del big", "", "few = few.clone()  # or del few"),
        ("few, more = big[:400], big[400:600]", "del big", "`more`", "few, more = few.clone(), more.clone()"),
        ("few = big[:400]\ndl = DataLoader(TensorDataset(few))\nfor _ in dl: pass", "del big", "`dl`", "del few, dl"),
        ("both = [big[:400], big[400:600]]", "del big", "another part of `both`", "del both"),
        ("tr = Trainer(model)", "del model", "another part of `tr`", "del tr"),
        ("tr = Trainer(model)\nopt = tr.optimizer", "del model", "`opt` and another part of `tr`", "del tr, opt"),
        ("class Box: pass\nbox = Box()\nbox.net = model", "del model", "", "del box.net"),
        (
            "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nloss = model(x).mean()\nloss.backward()",
            "del model",
            "`opt`",
            "loss = loss.detach()\ndel opt",
        ),
    ],
)
def test_the_fix_names_all_that_hold_it(before, deletion, also, fix):
    freed = f"was = alive()\nbefore = None\n{fix}\ngc.collect()\nassert alive() < was - 1_000_000"
    (finding,) = findings_in(START, ALIVE, before, deletion + GC, freed, slug=SLUG, fails=False)
    assert finding.fix.partition("  # or clone()")[0] == fix
    assert (f", and so do{'' if ' and ' in also else 'es'} {also}." if also else "them (it") in finding.message


def test_views_that_show_all_of_it_are_to_go_too():
    (finding,) = found(ALIVE, "train, val = big[:800], big[800:]", "del big" + GC)
    assert (finding.severity, finding.fix) == ("hint", "del train, val")


def test_views_that_are_used_are_no_waste():
    assert found(ALIVE, "rows = [big[i] for i in range(1024)]", "del big" + GC) == []
    assert found(ALIVE, "train = big[:800]\ndl = DataLoader(TensorDataset(train))", "del big" + GC) == []


@pytest.mark.parametrize(
    ("cell", "holder", "fix"),
    [
        ("kept.append(x)", "kept[0]", "del kept[0]"),
        ("kept = [{'x': x}]", "kept[0]['x']", "del kept[0]['x']"),
        ("kept = {}\nkept['last'] = x", "kept['last']", "del kept['last']"),
        ("from collections import deque\nkept = deque([x])", "kept[0]", "del kept[0]"),
        ("kept = (x, 1)", "kept", "del kept"),
        ("kept = [(x, 1)]", "kept[0]", "del kept[0]"),
    ],
)
def test_a_container_in_plain_sight_where_a_cell_only_asks_for_memory(cell, holder, fix):
    (finding,) = findings_in(START, cell, "del x" + GC, fix, slug="deleted-name-still-referenced")
    assert (finding.severity, finding.fix) == ("hint", fix)
    assert f"`{holder}` holds them" in finding.message


@pytest.mark.parametrize(
    "hook",
    [
        "w.register_hook(lambda g, r=x: g * r[0, :5]);",
        "handle = w.register_hook(lambda g, r=x: g * r[0, :5])",
        "def scaled(r):\n    return lambda g: g * r[0, :5]\nw.register_hook(scaled(x));",
        "w.register_hook(functools.partial(lambda r, g: g, x));",
    ],
)
def test_a_hook_of_a_tensor(hook):
    weights = "w = torch.ones(5, requires_grad=True)"
    (finding,) = findings_in(START, weights, hook, "del x" + GC, slug=SLUG)
    assert (finding.severity, finding.fix.partition("  #")[0]) == ("warning", "w._backward_hooks.clear()")
    assert not found(weights, hook, finding.fix, "del x" + GC) or "handle" in hook
    assert not found(weights, "w.register_hook(lambda g: g * 2);", "del x" + GC)


@pytest.mark.parametrize(
    "made",
    [
        "ds = TensorDataset(x)\ndl = DataLoader(ds)",
        "ds = TensorDataset(x)",
        "dl = DataLoader(TensorDataset(x))\nfor _ in dl: pass\ndl = DataLoader(TensorDataset(x))",
        "class Rows(torch.utils.data.Dataset):\n    pass\nds = Rows()\nds.x = x",
        "ds = TensorDataset(x)\ndl, late = DataLoader(ds), DataLoader(ds)\nfor _ in dl: pass",
        "dl = DataLoader(TensorDataset(x))\nfirst = next(iter(dl))\nprint(len(dl), first[0].shape)",
        "ds = TensorDataset(x)\nprint(ds[0][0].shape)",
        "class Parts:\n    def __init__(self, t):\n        self.ds = TensorDataset(t)\nparts = Parts(x)",
    ],
)
def test_data_that_is_yet_to_be_gone_through(made):
    assert not found(made, "del x" + GC)


@pytest.mark.parametrize("use", ["for _ in dl: pass", "for i, _ in enumerate(dl): pass", "rows = [row for row in dl]"])
def test_data_that_has_been_gone_through(use):
    assert found("dl = DataLoader(TensorDataset(x))", use, "del x" + GC)
