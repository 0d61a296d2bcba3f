"""Loads with `strict=False`."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
def make():
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
source = {k: v.clone() for k, v in make().state_dict().items()}
net = make()
"""
RESTORE = """
def restore(model, state):
    model.load_state_dict(state, strict=False)
    return model.eval()
net = restore(net, {"module." + k: v for k, v in source.items()})
"""
PREFIXED = "state = {'model.' + k: v for k, v in source.items()}\n"
SOME = """
state = {"0.bias": source["0.bias"], **{"x." + k: v for k, v in source.items()}}
net.load_state_dict(state, strict=False);
"""
NEW_HEAD = """
net[2] = nn.Linear(6, 3)
source = {k: v for k, v in source.items() if k[0] == "0"}
net.load_state_dict(source, strict=False);
"""
REFUSED = """
try:
    net.load_state_dict({"model." + k: v for k, v in source.items()})
except RuntimeError:
    pass
"""
PICKED = """
def load(model, state):
    own = model.state_dict()
    known = {{k: v for k, v in state.items() if k in own}}
    {}
load(net, {})
"""
RENAMED = "{'module.' + k: v for k, v in source.items()}"
FOUND = {
    "picked, none known": (PICKED.format("own.update(known); model.load_state_dict(own)", RENAMED), 5, "error"),
    "picked, another dict": (PICKED.format("model.load_state_dict({**own, **known})", RENAMED), 5, "error"),
    "a prefix": (PREFIXED + "net.load_state_dict(state, strict=False)", 2, "error"),
    "by place": ("net.load_state_dict({'model.' + k: v for k, v in source.items()}, False);", 1, "error"),
    "in a function": (RESTORE, 3, "error"),
    "a prefix too few": ("net = nn.Sequential(net)\nnet.load_state_dict(source, strict=False);", 2, "error"),
    "nothing given": ("net.load_state_dict({}, strict=False);", 1, "error"),
    "one of four": (SOME, 3, "warning"),
    "named, not read": (PREFIXED + "missing, unexpected = net.load_state_dict(state, strict=False)", 2, "error"),
    "named in one, not read": (PREFIXED + "res = net.load_state_dict(state, strict=False)", 2, "error"),
    "named in a function": (RESTORE.replace("    model.load", "    _ = model.load"), 3, "error"),
}
QUIET = {
    "picked, all known": PICKED.format("own.update(known); model.load_state_dict(own)", "source"),
    "picked, a body": PICKED.format(
        "own.update(known); model.load_state_dict(own)", "{k: v for k, v in source.items() if k[0] == '0'}"
    ),
    "picked, one of four": PICKED.format(
        "own.update(known); model.load_state_dict(own)", "{'0.bias': source['0.bias']}"
    ),
    "picked, in place": PICKED.format("for k in own: own[k].mul_(0.5)\n    model.load_state_dict(own)", "{}"),
    "averaged": (
        "own = net.state_dict()\nif 'x' in own: own.update({})\n"
        "net.load_state_dict({k: 0.9 * v + 0.1 * source[k] for k, v in own.items()})"
    ),
    "moved within": "own = net.state_dict()\nown['0.bias'].zero_()\nnet.load_state_dict(own)",
    "all": "net.load_state_dict(source)",
    "all, not strict": "net.load_state_dict(source, strict=False);",
    "a new head": NEW_HEAD,
    "looked at": PREFIXED + "missing, unexpected = net.load_state_dict(state, strict=False)\nprint(missing)",
    "asserted": PREFIXED + "res = net.load_state_dict(state, strict=False)\nassert res.unexpected_keys",
    "shown": PREFIXED + "res = net.load_state_dict(state, strict=False)\nres",
    "counted": PREFIXED + "_, more = net.load_state_dict(state, strict=False)\nn = len(more)",
    "given back": (
        PREFIXED + "def load(model, state):\n    r = model.load_state_dict(state, strict=False)\n"
        "    return model, r\nload(net, state);"
    ),
    "kept": PREFIXED + "class A: pass\na = A()\na.res = net.load_state_dict(state, strict=False)",
    "for all": (
        PREFIXED + "def load(state):\n    global res\n    res = net.load_state_dict(state, strict=False)\nload(state)"
    ),
    "more than needed": "net.load_state_dict({**source, 'head.weight': torch.ones(1)}, strict=False);",
    "an adapter": "net.load_state_dict({'2.bias': torch.zeros(2)}, strict=False);",
    "refused": REFUSED,
}


def findings(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == "checkpoint-keys-ignored"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cell, line, severity = FOUND[name]
    assert [(f.line, f.severity) for f in findings(cell)] == [(line, severity)]


def test_the_prefix_is_named():
    (finding,) = findings(RESTORE)
    assert finding.fix == 'model.load_state_dict({k.removeprefix("module."): v for k, v in state.items()})'
    assert "`net`" in finding.message
    assert "strict" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("checkpoint['model']", "in checkpoint['model'].items()"),
        ("dict(checkpoint['model'])", "in dict(checkpoint['model']).items()"),
    ],
)
def test_the_fix_names_the_state_as_the_code_does(given, named):
    kept = "checkpoint = {'model': {'model.' + k: v for k, v in source.items()}, 'epoch': 3}"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"{kept}\nnet.load_state_dict({given}, strict=False);")
    (finding,) = (one for one in run.findings if one.slug == "checkpoint-keys-ignored")
    assert named in finding.fix


FILTER = "own = net.state_dict()\nkept = {{k: v for k, v in {0}.items() if k in own}}\n{1}\nnet.load_state_dict({2});"


@pytest.mark.parametrize(
    ("name", "put", "given"),
    [("renamed", "own.update(kept)", "own"), ("parcel['model']", "pass", "{**own, **kept}")],
)
def test_the_fix_names_what_was_filtered(name, put, given):
    made = "renamed = {'module.' + k: v for k, v in source.items()}\nparcel = {'model': renamed}\n"
    (finding,) = findings(made + FILTER.format(name, put, given))
    assert finding.fix.startswith(f"print({name}.keys() - net.state_dict().keys())  #")


CUT = """\
def load(model, state):
    own = model.state_dict()
    kept = {k[6:]: v for k, v in state.items() if k[6:] in own and v.shape == own[k[6:]].shape}
    own.update(kept)
    model.load_state_dict(own, strict=False);
load(net, source)"""
TURNS = """\
own, state = net.state_dict(), {"model." + k: v for k, v in source.items()}
for name, value in state.items():
    if name in own: own[name] = value
own.update({})
net.load_state_dict(own);"""


def test_keys_that_are_changed_on_the_way_are_shown_as_they_become():
    (finding,) = findings(CUT)
    shown = finding.fix.partition("  # ")[0]
    assert shown == "print({k: k[6:] for k in state}, model.state_dict().keys())"
    assert findings(CUT.replace("    own.update", f"    {shown}\n    own.update").replace("[6:]", "[0:]")) == []


def test_what_a_loop_picks_from_is_named():
    (finding,) = findings(TURNS)
    assert finding.fix.startswith("print(state.keys() - net.state_dict().keys())  #")


PARTS = """
class Net(nn.Module):
    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
def body(n=4): return nn.Sequential(nn.Linear(n, 8), nn.BatchNorm1d(8), nn.Linear(8, n))
"""


@pytest.mark.parametrize(
    ("given", "own", "said", "named"),
    [
        ("encoder=body()", "backbone=body()", "`encoder.`", 'k.replace("encoder.", "backbone.")'),
        ("encoder=body(), head=nn.Linear(2, 2)", "backbone=body(), head=nn.Linear(2, 2)", "`backbone.`", "replace("),
        ("tail=body(6), encoder=body()", "backbone=body(), head=nn.Linear(2, 3)", "`encoder.`", "strict=False)"),
        ("enc1=body(), enc2=body()", "block1=body(), block2=body()", "`enc`", 'k.replace("enc", "block")'),
        ("net=Net(enc=body())", "net=Net(dec=body())", "`enc.`", 'k.replace("enc.", "dec.")'),
        ("net=body()", "deep=Net(net=body())", "lack `deep.`", 'f"deep.{k}"'),
        ("module=Net(net=body())", "net=body()", "`module.` stands", 'removeprefix("module.")'),
        (
            "enc=Net(mlp=body(), norm=body())",
            "dec=Net(fc=body(), norm=body())",
            "`.mlp.` is",
            '"enc.", "dec.").replace',
        ),
        ("enc=Net(mlp=body())", "dec=Net(fc=body())", "`dec.", '"enc.mlp.", "dec.fc."'),
        (
            "enc=Net(a=Net(mlp=body()), b=Net(mlp=body()))",
            "dec=Net(a=Net(fc=body()), b=Net(fc=body()))",
            "`dec.`",
            'k.replace("enc.", "dec.").replace(".mlp.", ".fc.")',
        ),
        ("module=Net(enc=body())", "net=Net(block=Net(dec=body()))", "`net.", "replace("),
        (
            "module=Net(a=body(), b=body())",
            "a=body(), c=body()",
            "`b.`",
            'k.removeprefix("module.").replace("b.", "c.")',
        ),
        ("a=body(), b=body()", "net=Net(a=body(), c=body())", "`b.`", 'f"net.{k}".replace("b.", "c.")'),
    ],
)
def test_the_load_runs_with_keys_renamed(given, own, said, named):
    make = PARTS + f"ready = Net({own})\nparcel = {{'w': Net({given}).state_dict()}}"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(make)
        run = notebook.run("ready.load_state_dict(parcel['w'], strict=False);")
        (finding,) = (one for one in run.findings if one.slug == "checkpoint-keys-ignored")
        assert said in finding.message
        assert named in finding.fix
        assert ".`." not in finding.message
        assert ("strict=False" in finding.fix) == finding.fix.startswith("print(")
        load = finding.fix.removeprefix("print(").replace("False))  #", "False)  #")
        again = notebook.run(f"result = {load}")
        assert notebook.errors[-1] is None
        assert not [one for one in again.findings if one.slug == "checkpoint-keys-ignored"]
        assert len(notebook.shell.user_ns["result"].missing_keys) <= 2


def test_keys_that_differ_in_no_one_way():
    cell = "ready = Net(a=body())\nready.load_state_dict(Net(x=nn.Linear(4, 4)).state_dict(), strict=False);"
    with a_notebook() as notebook:
        notebook.run(SETUP + PARTS)
        run = notebook.run(cell)
        (finding,) = (one for one in run.findings if one.slug == "checkpoint-keys-ignored")
        assert finding.fix.startswith("print(ready.load_state_dict(Net(x=nn.Linear(4, 4)).state_dict(), strict=False))")


def test_the_counters_of_batchnorm_are_counted():
    cell = (
        "net = body()\nnet.load_state_dict({'module.' + k: v for k, v in body().state_dict().items()}, strict=False);"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP + PARTS)
        (finding,) = (one for one in notebook.run(cell).findings if one.slug == "checkpoint-keys-ignored")
        assert "none of the 9 keys" in finding.message


@pytest.mark.parametrize("given", ["parcel", "dict(parcel)"])
def test_the_weights_of_a_whole_checkpoint_are_found(given):
    make = (
        PARTS + "ready = body()\nparcel = {'epoch': 3, 'best': {'w': body().state_dict()}, 'net': body().state_dict()}"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(make)
        run = notebook.run(f"ready.load_state_dict({given}, strict=False);")
        (finding,) = (one for one in run.findings if one.slug == "checkpoint-keys-ignored")
        assert "['net']`, and the whole checkpoint was given" in finding.message
        assert not notebook.run(f"{finding.fix};").findings
        assert notebook.errors[-1] is None


@pytest.mark.parametrize("head", ["{'epoch': 3, 'net': %s}", "{'net': %s, 'other': nn.Linear(2, 2).state_dict()}"])
def test_the_weights_of_a_whole_checkpoint_fit_all_but_a_new_head(head):
    def grown(classes):
        return f"nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, {classes}))"

    with a_notebook() as notebook:
        notebook.run(f"{SETUP}parcel = {head % (grown(3) + '.state_dict()')}\nready = {grown(10)}")
        (finding,) = notebook.run("ready.load_state_dict(parcel, strict=False);").findings
        assert "; most of the weights are in `parcel['net']`, and the whole checkpoint was given" in finding.message
        assert not notebook.run(f"{finding.fix};").findings
        notebook.run("assert (ready[0].weight == parcel['net']['0.weight']).all()")
        assert notebook.errors[-1] is None


def test_of_several_states_that_fit_none_is_chosen():
    two = "'teacher': make().state_dict(), 'student': make().state_dict()"
    other = "'other': nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 2)).state_dict()"
    with a_notebook() as notebook:
        notebook.run(f"{SETUP}both, one = {{{two}, {other}}}, {{{other}, 'net': source}}")
        (finding,) = notebook.run("net.load_state_dict(both, strict=False);").findings
        assert "2 entries of the checkpoint that was given hold such weights: `both['teacher']`" in finding.message
        assert finding.fix.startswith("print(both.keys())")
        (finding,) = notebook.run("net.load_state_dict(one, strict=False);").findings
        assert finding.fix == "net.load_state_dict(one['net'])"
