"""Lines that ask several models in turn: all of them are named, and the fix is for all."""

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "eval-missing"
TRAINED = """
import torch
from torch import nn
torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.3), nn.Linear(16, 1)) for _ in range(4)]
x, y = torch.randn(64, 4), torch.randn(64, 1)
for one in nets:
    opt = torch.optim.SGD(one.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad(); nn.functional.mse_loss(one(x), y).backward(); opt.step()
del one
ask = lambda net: net(x)
table, (a, b, *rest) = dict(zip("abcd", nets)), nets
"""
NETS = [f"nets[{number}]" for number in range(4)]
FOUND = {
    "a sum": ("del a, b, table", "sum(net(x) for net in nets)", NETS, "`nets[0]`, `nets[1]` and 2 more of `nets`"),
    "a list": ("del a, b, table", "[net(x) for net in nets]", NETS, "`nets[0]`, `nets[1]` and 2 more of `nets`"),
    "some are asleep": (
        "del a, b, table\nnets[0].eval()",
        "[net(x) for net in nets]",
        NETS[1:],
        "`nets[1]`, `nets[2]` and `nets[3]`",
    ),
    "a dictionary": (
        "del a, b, nets",
        "[table[key](x) for key in table]",
        [f"table['{key}']" for key in "abcd"],
        "`table['a']`, `table['b']` and 2 more of `table`",
    ),
    "keys that nobody can type": (
        "del a, b, table\nnets = {object(): one for one in nets}",
        "[net(x) for net in nets.values()]",
        "nets.values()",
        "`nets[…]` and 3 more of `nets`",
    ),
    "a name and a list": (
        "del b, table\nrest, nets = nets[1:], None",
        "[net(x) for net in [a, *rest]]",
        ["a", "rest[0]", "rest[1]", "rest[2]"],
        "`a`, `rest[0]` and 2 more",
    ),
    "a name and keys that nobody can type": (
        "del b, table\nrest, nets = {object(): one for one in nets[1:]}, None",
        "[net(x) for net in [a, *rest.values()]]",
        "[a, *rest.values()]",
        "`a`, `rest[…]` and 2 more",
    ),
    "a name that a loop has left": (
        "del b, table\nrest, nets = nets[1:3], None\nfor last in rest: pass",
        "[net(x) for net in [a, *rest]]",
        "[a, *rest]",
        "`a`, `rest[0]` and 1 more",
    ),
    "a name that a loop over a dictionary has left": (
        "del a, b, nets\nfor number, last in enumerate(table.values()): pass",
        "[ask(one) for one in table.values()]",
        "table.values()",
        "`table['a']`, `table['b']` and 2 more of `table`",
    ),
    "a name that a loop over a list has left": (
        "del a, b, table\nfor last, number in zip(nets, range(9)): pass",
        "[ask(one) for one in nets]",
        "nets",
        "`nets[0]`, `nets[1]` and 2 more of `nets`",
    ),
    "a name that a loop over something else has left": (
        "del a, b, table\nlast = nets.pop()\nfor other in nets: pass\ndel other",
        "[ask(one) for one in (*nets, last)]",
        ["nets[0]", "nets[1]", "nets[2]", "last"],
        "`nets[0]`, `nets[1]` and 2 more of `nets`",
    ),
    "by name": ("", "[a(x), b(x)]", ["a", "b"], "`a` and `b`"),
}


def loop_over(names, mode):
    if isinstance(names, str):
        return f"for one_model in {names}:\n    one_model.{mode}()"
    if len(names) <= 3:
        return "\n".join(f"{name}.{mode}()" for name in names)
    return f"for one_model in ({', '.join(names)}):\n    one_model.{mode}()"


@pytest.mark.parametrize("way", FOUND)
def test_all_models_of_a_line_are_told(way):
    before, asked, source, listed = FOUND[way]
    cell = f"{before}\nwith torch.no_grad():\n    out = {asked}"
    with a_notebook() as notebook:
        notebook.run(TRAINED)
        run = notebook.run(cell)
        (finding,) = [one for one in run.findings if one.slug == SLUG]
        assert finding.message.startswith(f"{listed} were asked for predictions in train mode (gradients are off): ")
        assert "1 Dropout is active in each, so results depend on chance." in finding.message
        modes = [loop_over(source, mode) for mode in ("eval", "train")]
        assert finding.fix == f"{modes[0]}   # before predicting\n{modes[1]}  # before training goes on"
        notebook.run(modes[0])
        run = notebook.run(f"with torch.no_grad():\n    out = {asked}")
        assert not run or not [one for one in run.findings if one.slug == SLUG]
        assert notebook.errors == [None] * 4


def test_one_model_of_several_is_told_alone():
    awake = "for net in nets[1:]:\n    net.eval()\nwith torch.no_grad():\n    out = sum(net(x) for net in nets)"
    (finding,) = findings_in(TRAINED, f"del a, b, table\n{awake}", slug=SLUG, fails=False)
    assert finding.message.startswith("`nets[0]` was asked for predictions in train mode")
    assert finding.fix.startswith("nets[0].eval()   # before predicting\nnets[0].train()")
