"""Graphs that are kept and grow from call to call, and those that are kept for a reason."""

import pytest

from tests.cells import a_notebook, findings_in
from tests.fakes import a_backward, a_graph, a_place, a_run, a_witness
from torch_inspector.pitfalls.memory.retain_graph_growth import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
cell, readout = nn.RNNCell(8, 32), nn.Linear(32, 1)
weights = [*cell.parameters(), *readout.parameters()]
"""
GROWS = """
def train(steps, window=10 ** 9):
    state = torch.zeros(16, 32)
    for step in range(steps):
        state = cell(torch.randn(16, 8), state.detach() if step % window == 0 else state)
        loss = readout(state).pow(2).mean()
        loss.backward(retain_graph=True)
"""
TOTAL = """
def train(steps):
    total = 0
    for step in range(steps):
        total = total + readout(torch.randn(16, 32)).pow(2).mean()
        total.backward(retain_graph=True)
"""


def found(*cells):
    with a_notebook(min_bytes=0) as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [(line, severity) for _, slug, line, severity in notebook.findings() if slug == "retain-graph-growth"]


@pytest.mark.parametrize(
    ("cells", "severity"),
    [
        ((GROWS, "train(40)"), "warning"),
        ((GROWS, "train(300)"), "warning"),
        ((GROWS, "train(12)"), "hint"),
        ((TOTAL, "train(40)"), "warning"),
        ((GROWS.replace("loss.backward(", "torch.autograd.backward(loss, "), "train(40)"), "warning"),
    ],
)
def test_growth_is_found_where_backward_is_called(cells, severity):
    ((line, graded),) = found(*cells)
    assert cells[0].splitlines()[line - 1].count("backward")
    assert graded == severity


DETACHED = GROWS.replace("else state)", "else state.detach())")
ONE_GRAPH = """
loss = readout(torch.randn(16, 32)).pow(2).mean()
for _ in range(40):
    loss.backward(retain_graph=True)
"""
SIZES = """
for n in range(40):
    loss = sum(readout(torch.randn(4, 32)).sum() for _ in range(1 + n % 7))
    loss.backward(retain_graph=True)
"""
SILENT = {
    "few calls": (GROWS, "train(7)"),
    "windows": (GROWS, "train(200, window=5)"),
    "short sequences": (GROWS, "for _ in range(30):\n    train(7)"),
    "detached": (DETACHED, "train(40)"),
    "create_graph": (DETACHED.replace("retain_graph", "create_graph"), "train(9)"),
    "one graph again and again": (ONE_GRAPH,),
    "sizes that vary": (SIZES,),
}


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("cells", SILENT.values(), ids=list(SILENT))
def test_kept_graphs_that_do_not_grow(cells):
    assert found(*cells) == []


def test_a_graph_that_stays_small_and_one_that_its_variable_tells_of():
    calls = [(1, 10, 1 << 18), (2, 16, 1 << 19), (3, 22, 3 << 18), (8, 52, 2 << 20), (16, 100, 4 << 20)]
    seen = [
        a_backward(line=3, order=i, index=i, retain_graph=True, witness=a_witness(node_count=n, saved_nbytes=b))
        for i, n, b in calls
    ]
    (finding,) = check(a_run(*seen))
    assert (finding.line, finding.severity) == (3, "hint")
    assert list(check(a_run(*seen, min_nbytes=8 << 20))) == []
    state = a_graph(
        path="state", differentiated=True, newest_nodes=1, scalar=False, saved_nbytes=4 << 20, container=False
    )
    (finding,) = check(a_run(*seen, after=[state._replace(step_count=9, grown_at=a_place())]))
    assert finding.fix.startswith("state = state.detach()")
    assert list(check(a_run(*seen, after=[state._replace(step_count=16)]))) == []


LAYER = """
class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 32)
        self.mem = torch.zeros(1, 32)
    def forward(self, x):
        self.mem = 0.9 * self.mem + self.fc(x)
        return torch.sigmoid(self.mem)
lif = Leaky()
"""
LAYER_LOOP = """
opt = torch.optim.SGD([*readout.parameters(), *lif.parameters()], lr=.1)
for _ in range(30):
    spikes = lif(torch.randn(4, 8))
    loss = readout(spikes).mean()
    loss.backward(retain_graph=True)
"""
STEPPED = LAYER_LOOP.replace("    loss.b", "    opt.zero_grad(); loss.b").replace("=True)", "=True); opt.step()")
NAME_LOOP = """
mem = torch.zeros(4, 32)
for _ in range(30):
    mem = cell(torch.randn(4, 8), mem) + 0.9 * mem
    spikes = torch.sigmoid(mem)
    loss = readout(spikes).mean()
    loss.backward(retain_graph=True)
"""


@pytest.mark.parametrize(("layer", "loop"), [(LAYER, LAYER_LOOP), (LAYER, STEPPED), ("", NAME_LOOP)])
def test_the_state_is_cut_off_and_not_what_is_made_of_it(layer, loop):
    state = "lif.mem" if layer else "mem"
    fixes = [one.fix for one in findings_in(SETUP, layer, loop, min_bytes=0)]
    assert len(fixes) == 1 + (loop is STEPPED)
    for fix in fixes:
        assert fix.startswith(f"{state} = {state}.detach()  # at the end of each step")
        mended = loop.replace("retain_graph=True", "") + f"    {fix}\n"
        assert findings_in(SETUP, layer, mended, min_bytes=0, fails=False) == []


LSTM = """
rnn, out_of = nn.LSTM(8, 32), nn.Linear(32, 1)
state = None
for _ in range(30):
    out, state = rnn(torch.randn(3, 4, 8), state)
    loss = out_of(out).mean()
    loss.backward(retain_graph=True)
"""
LAYERS = """
cells, out_of = nn.ModuleList(nn.GRUCell(8, 8) for _ in range(3)), nn.Linear(8, 1)
states = [torch.zeros(4, 8)] * 3
def turn(x, states):
    new = []
    for one, h in zip(cells, states):
        x = one(x, h)
        new.append(x)
    return x, new
for _ in range(30):
    out, states = turn(torch.randn(4, 8), states)
    loss = out_of(out).mean()
    loss.backward(retain_graph=True)
"""


@pytest.mark.parametrize(
    ("loop", "fix"),
    [
        (LSTM, "state = tuple(h.detach() for h in state)  # at the end of each step"),
        (LAYERS, "states = [h.detach() for h in states]  # at the end of each step"),
    ],
)
def test_a_state_of_several_tensors_is_detached_as_a_whole(loop, fix):
    assert fix in [one.fix for one in findings_in(SETUP, loop, min_bytes=0)]
    mended = loop.replace("retain_graph=True", "") + f"    {fix}\n"
    assert findings_in(SETUP, mended, min_bytes=0, fails=False) == []


COUNTED = """
cell, out_of = nn.GRUCell(8, 8), nn.Linear(8, 1)
state = {}
for _ in range(6):
    x = torch.randn(4, 8)
    state = {}
    loss = out_of({}).pow(2).mean()
    loss.backward(retain_graph=True)
"""


@pytest.mark.parametrize(
    ("first", "turn", "read"),
    [
        ("{'h': torch.zeros(4, 8), 't': 0}", "{'h': cell(x, state['h']), 't': state['t'] + 1}", "state['h']"),
        ("(torch.zeros(4, 8), 0)", "(cell(x, state[0]), state[1] + 1)", "state[0]"),
        ("[torch.zeros(4, 8), None]", "[cell(x, state[0]), None]", "state[0]"),
        ("{'h': torch.zeros(4, 8)}", "{'h': cell(x, state['h'])}", "state['h']"),
    ],
)
def test_a_state_with_other_things_is_detached_where_it_holds_tensors(first, turn, read):
    loop = COUNTED.format(first, turn, read)
    fixes = {one.fix for one in findings_in(SETUP, loop, min_bytes=0) if "at the end of each step" in one.fix}
    (fix,) = fixes
    assert ("is_tensor" in fix) == any(other in first for other in ("'t'", "), 0)", "None"))
    mended = loop.replace("retain_graph=True", "") + f"    {fix}\n"
    assert findings_in(SETUP, mended, slug="graph-retained-in-list", min_bytes=0, fails=False) == []
