"""Lists of layers that hold one layer several times: multiplied, and shared on purpose."""

import pytest

from tests.cells import findings_in

SLUG = "same-module-repeated"
START = "import copy, itertools\nimport torch\nfrom torch import nn\nx, act = torch.randn(4, 8), nn.ReLU()"
STACK = """\
class Stack(nn.Module):
    def __init__(self, depth=3, width=8):
        super().__init__()
        {}
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x"""


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    "filling",
    [
        "self.blocks = nn.ModuleList([nn.Linear(width, width)] * depth)",
        "self.blocks = nn.ModuleList(depth * [nn.Sequential(nn.Linear(width, width), nn.ReLU())])",
        "self.blocks = nn.Sequential(*([nn.Linear(width, width), nn.ReLU()] * depth))",
        "layer = nn.Linear(width, width); self.blocks = nn.ModuleList([layer for _ in range(depth)])",
        "layer = nn.Linear(width, width); self.blocks = nn.ModuleList([layer] * depth)",
        "self.blocks = nn.ModuleList(itertools.repeat(nn.Linear(width, width), depth))",
        (
            "self.blocks = nn.ModuleList(); layer = nn.Linear(8, 8)\n"
            "        for _ in range(depth): self.blocks.append(layer)"
        ),
    ],
)
@pytest.mark.parametrize(
    "use", ["stack = Stack()", "def run():\n    stack = Stack()\n    return stack(x)\nout = run()"]
)
def test_a_layer_that_was_multiplied(filling, use):
    (finding,) = found(STACK.format(filling), use)
    assert finding.subject == "stack.blocks"
    assert "the 3 entries of `stack.blocks` are one and the same" in finding.message
    assert finding.line in (4, 5)


def test_other_containers():
    (of_dict,) = found("heads = nn.ModuleDict(dict.fromkeys(['a', 'b'], nn.Linear(8, 1)))")
    (of_numbers,) = found("scales = nn.ParameterList([nn.Parameter(torch.ones(8))] * 3)")
    assert "ModuleDict" not in of_dict.message
    assert "`heads`" in of_dict.message
    assert "8 parameters to train instead of 24" in of_numbers.message


def test_it_is_said_once():
    assert len(found(STACK.format("self.blocks = nn.ModuleList([nn.Linear(8, 8)] * 3)"), "s = Stack()", "s(x)")) == 1


@pytest.mark.parametrize(
    "filling",
    [
        "self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])",
        "self.blocks = nn.ModuleList([nn.ReLU()] * depth)",
        "self.blocks = nn.Sequential(*[nn.Tanh()] * depth, nn.Linear(8, 8))",
        "layer = nn.Linear(8, 8); self.blocks = nn.ModuleList([copy.deepcopy(layer) for _ in range(depth)])",
        "layer = nn.Linear(8, 8); self.blocks = nn.Sequential(layer, nn.ReLU(), layer)",
        "shared = nn.Linear(8, 8); self.blocks = nn.ModuleList([shared] * depth)",
        "a, b = nn.Linear(8, 8), nn.Linear(8, 8); self.blocks = nn.ModuleList([a, b] * depth)",
        "sizes = [8] * 4; self.blocks = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))",
        "rates = [0.1] * 3; step = nn.Linear(8, 8); self.blocks = nn.Sequential(step, step)",
        "a, b = nn.Linear(8, 8), nn.Linear(8, 8); a.weight = b.weight; self.blocks = nn.ModuleList([a, b])",
        "self.blocks = nn.ModuleList([nn.Linear(8, 8)] * 1)",
        "self.blocks = nn.ModuleList()\n        for _ in range(depth): self.blocks.append(nn.Linear(8, 8))",
        (
            "self.blocks = nn.ModuleList()\n        for _ in range(depth):\n            layer = nn.Linear(8, 8)\n"
            "            self.blocks.append(layer)"
        ),
    ],
)
def test_what_is_several_layers_or_meant_to_be_one(filling):
    assert found(STACK.format(filling) + "\nstack = Stack()", "stack(x)") == []


@pytest.mark.parametrize(
    "cell",
    [
        "one = nn.Sequential(nn.Linear(8, 8), act)\nnet = nn.Sequential(*[one for _ in range(3)], nn.Linear(8, 1))",
        "one = nn.Linear(8, 8)\nparts = [one, nn.ReLU()] * 3\nnet = nn.Sequential(*parts, nn.Linear(8, 1))",
        "net = nn.Sequential(nn.Linear(8, 8), *[nn.Linear(8, 8)] * 3)",
    ],
)
def test_other_layers_beside_it(cell):
    (finding,) = found(cell)
    assert finding.subject == "net"
    assert "3 of the 4 layers of `net` are one and the same" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        # Written out, beside text that multiplies something else.
        "width = 8\nwidths = [width] * 3\nstep = nn.Linear(8, 8)\nnet = nn.Sequential(step, nn.Linear(8, 8), step)",
        # One learned activation between layers of their own.
        "act = nn.PReLU()\nnet = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(8, 8), act)])",
        "act = nn.PReLU()\nacts = [act] * 3\nnet = nn.Sequential(nn.Linear(8, 8), act, nn.Linear(8, 8), act)",
    ],
)
def test_shared_beside_others_on_purpose(cell):
    assert not found(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "tied = nn.Sequential(lin, nn.Tanh(), lin)",
        (
            "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.enc = nn.Linear(8, 8)\n        self.towers = nn.ModuleList([self.enc, self.enc])\ntwo = Two()"
        ),
    ],
)
@pytest.mark.parametrize(
    "other", ["w = torch.ones(3)\nks = [w] * 3", "nets = [lin] * 3", "zs = [lin for _ in range(3)]"]
)
def test_written_out_beside_text_that_repeats_something_else(other, cell):
    assert not found("lin = nn.Linear(8, 8)\n" + other, cell)


def test_a_part_with_a_name_of_its_own_is_at_most_a_hint():
    for filling in (
        "self.block = nn.Linear(8, 8); self.blocks = nn.ModuleList([self.block] * depth)",
        "self.block = nn.Linear(8, 8); self.blocks = [self.block for _ in range(depth)]",
        "block = nn.Linear(8, 8); self.blocks = nn.ModuleList([block] * depth)",
        "block = nn.Linear(8, 8); self.blocks = nn.ModuleList(block for _ in range(depth))",
    ):
        assert [one.severity for one in found(STACK.format(filling), "stack = Stack()")] == ["hint"]


PAIRS = "hidden = [nn.Linear(8, 8), nn.ReLU()] * 3\nlayers = [nn.Linear(8, 8)] + hidden"


@pytest.mark.parametrize(
    "cells",
    [
        [PAIRS, "net = nn.Sequential(*layers)"],
        [PAIRS, "parts = layers + [nn.Linear(8, 1)]", "net = nn.Sequential(*parts)"],
    ],
)
def test_multiplied_in_one_cell_and_used_in_another(cells):
    (finding,) = found(*cells)
    assert (finding.subject, finding.line, finding.cell) == ("net", 1, 2)
    assert finding.fix.startswith("[layer for _ in range(3) for layer in (nn.Linear(8, 8), nn.ReLU())]  #")


def test_what_another_cell_multiplies_is_something_else():
    lin = "lin = nn.Linear(8, 8)\nothers = [nn.Linear(8, 8)] * 3"
    assert not found(lin, "net = nn.Sequential(lin, nn.Tanh(), lin)")
    assert not found(PAIRS.replace("] * 3", " for _ in range(3)]").replace(", nn.ReLU()", ""), "nn.Sequential(*layers)")


@pytest.mark.parametrize(
    ("before", "filling", "old", "new"),
    [
        (
            "block = nn.Linear(width, 8)",
            "nn.Sequential(*{})",
            "([block] * depth)",
            "[nn.Linear(width, 8) for _ in range(depth)]",
        ),
        (
            "block = nn.Linear(8, 8)",
            "nn.ModuleList({})",
            "[block for _ in range(depth)]",
            "[nn.Linear(8, 8) for _ in range(depth)]",
        ),
        (
            "pass",
            "nn.ModuleList({})",
            "itertools.repeat(nn.Linear(8, 8), depth)",
            "[nn.Linear(8, 8) for _ in range(depth)]",
        ),
        ("pass", "nn.ModuleDict({})", "dict.fromkeys('ab', nn.Linear(8, 8))", "{key: nn.Linear(8, 8) for key in 'ab'}"),
        ("block = dense()", "nn.ModuleList({})", "[block] * depth", "[copy.deepcopy(block) for _ in range(depth)]"),
    ],
)
def test_the_fix_makes_each_from_what_made_the_first(before, filling, old, new):
    dense = "def dense():\n    return nn.Linear(8, 8)"
    (finding,) = found(dense, STACK.format(f"{before}; self.blocks = {filling.format(old)}"), "stack = Stack()")
    assert finding.fix.partition("  #")[0] == new
    assert found(dense, STACK.format(f"{before}; self.blocks = {filling.format(new)}"), "stack = Stack()") == []


def test_a_copy_is_imported_where_no_cell_has_it():
    made = "def dense(): return nn.Linear(8, 8)\nblock = dense()\nblocks = nn.ModuleList([block] * 3)"
    source = f"import torch\nfrom torch import nn\n{made}"
    (finding,) = findings_in(source, slug=SLUG)
    assert finding.fix.startswith("import copy\n[copy.deepcopy(block) for _ in range(3)]  # ")


NAMED = """\
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        {}
        for i in range(3):
            {}
    def forward(self, x):
        for i in range(3):
            x = getattr(self, f"hidden{{i}}")(x)
        return x
net = Named()"""


@pytest.mark.parametrize("adds", ["self.add_module('hidden%d' % i, fc)", "setattr(self, f'hidden{i}', fc)"])
def test_layers_that_are_counted_up_by_name(adds):
    (finding,) = found(NAMED.format("fc = nn.Linear(8, 8)", adds))
    assert (finding.subject, finding.severity, finding.line) == ("net.hidden0", "hint", 6)
    assert "the 3 layers that are counted up from `net.hidden0` are one and the same Linear" in finding.message
    assert ", nn.Linear(8, 8))" in finding.fix
    new = finding.fix.partition("  #")[0]
    assert found(NAMED.format("fc = nn.Linear(8, 8)", new)) == []


@pytest.mark.parametrize(
    ("before", "adds"),
    [
        ("fc = nn.Tanh()", "self.add_module(f'hidden{i}', fc)"),
        ("shared = nn.Linear(8, 8)", "self.add_module(f'hidden{i}', shared)"),
        ("self.hidden0 = self.hidden1 = self.hidden2 = nn.Linear(8, 8)", "pass"),
        ("fcs = [nn.Linear(8, 8) for _ in range(3)]", "setattr(self, f'hidden{i}', fcs[i])"),
        ("self.hidden1 = self.hidden2 = self.x = nn.Linear(8, 8)", "setattr(self, f'x{i}', nn.Linear(8, 8))"),
        ("self.hidden1 = self.hidden2 = fc = nn.Linear(8, 8)", "self.add_module(f'part{i}', nn.Linear(8, 8))"),
    ],
)
def test_names_of_several_layers_or_of_one_that_is_meant(before, adds):
    assert found(NAMED.format(before, adds)) == []


CODER = """\
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 8)]
        self.encoder = nn.Sequential(*parts)
        {}
    def forward(self, x):
        return self.decoder(self.encoder(x))
coder = Coder()"""


@pytest.mark.parametrize(
    ("decoder", "text"),
    [
        ("self.decoder = nn.Sequential(*reversed(parts))", "reversed(parts)"),
        ("self.decoder = nn.Sequential(*parts[::-1])", "parts[::-1]"),
        (
            "back = [p for p in reversed(parts) if not isinstance(p, nn.ReLU)]; self.decoder = nn.Sequential(*back)",
            "reversed(parts)",
        ),
    ],
)
def test_a_decoder_that_is_the_encoder_in_reverse(decoder, text):
    (finding,) = found(CODER.format(decoder))
    assert (finding.line, finding.severity, finding.subject) == (6, "hint", "coder.decoder")
    assert "there are 160 parameters to train instead of 320" in finding.message
    assert finding.fix.splitlines()[-1].startswith(f"[copy.deepcopy(one) for one in {text}]")
    assert found(CODER.format(decoder.replace(text, f"[copy.deepcopy(one) for one in {text}]"))) == []


@pytest.mark.parametrize(
    "decoder",
    [
        # Two towers of one kind, a way back through layers that have one, a part of them, and one that is a class.
        "self.decoder = nn.Sequential(*list(reversed(parts))[::-1])",
        "self.decoder = nn.Sequential(); self.back = nn.ModuleList(reversed(parts))",
        "self.decoder = nn.Sequential(*reversed(parts[2:]))",
        "rows = list(reversed(parts)); self.decoder = nn.Sequential(nn.Linear(8, 8), *rows[1:])",
        "self.decoder = type('Back', (nn.Sequential,), {})(*reversed(parts))",
    ],
)
def test_layers_that_are_meant_to_serve_twice(decoder):
    assert found(CODER.format(decoder)) == []
