"""What is said of collections that keep histories: how many, and a line that the rest of the code can live with."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
from collections import defaultdict
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(64, 8)
def step():
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    return loss
"""


def found(*cells, slug="graph-retained-in-list"):
    return findings_in(SETUP, *cells, slug=slug, min_bytes=0, fails=False)


def test_the_last_of_a_list_counts_though_another_container_has_it():
    loop = "for _ in range(10):\n    terms = {'a': step(), 'b': 1.0}\n    log['a'].append(terms['a'])"
    (finding,) = found(f"log = defaultdict(list)\n{loop}")
    assert "keeps 10 losses" in finding.message


@pytest.mark.parametrize(
    ("later", "read"),
    [
        ("", ".item()"),
        ("print(sum(losses))", ".item()"),
        ("print(sum(losses).item())", ".detach()"),
        ("total = sum(losses) / 6\nprint(total.item())", ".detach()"),
        ("print([f'{one.item():.3f}' for one in losses])", ".detach()"),
        ("print(torch.stack(losses).shape)", ".detach()"),
        ("print(losses[-1].item())", ".detach()"),
        ("for i, one in enumerate(losses):\n    print(i, one.cpu())", ".detach()"),
        ("for a in x:\n    print(a.sum())", ".item()"),
    ],
)
def test_what_is_read_as_a_tensor_stays_one(later, read):
    (finding,) = found(f"losses = [step() for _ in range(6)]\n{later}")
    assert finding.fix == f"losses = [step(){read} for _ in range(6)]"


@pytest.mark.parametrize(
    ("row", "fix"),
    [
        ("{'loss': loss, 'size': torch.tensor(64)}", "rows.append({k: v.detach() for k, v in out.items()})"),
        ("{'loss': loss, 'size': 64}", "call .item() on each loss before it goes into rows"),
    ],
)
def test_rows_of_tensors_are_detached_as_a_whole(row, fix):
    (finding,) = found(f"rows = []\nfor _ in range(6):\n    loss = step()\n    out = {row}\n    rows.append(out)")
    assert finding.fix == fix


ROWS = {
    "what": ("{'loss': loss, 'parts': {'l2': loss * 2}}", "24 losses", " (`['loss']` and `['parts']['l2']` of its el"),
    "one": ("{'loss': loss, 'n': 3}", "12 losses", ":"),
    "pair": ("(loss, 3)", "12 losses", ":"),
    "record": ("SimpleNamespace(loss=loss, n=3)", "12 losses", ":"),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("line", ["out = {}\n    kept.append(out)", "kept.append({})"])
def test_what_is_kept_in_rows_is_told_once_and_counted_with_the_last(kind, line):
    made, count, where = ROWS[kind]
    begin = "from types import SimpleNamespace\nkept = []\nfor _ in range(12):\n    loss = step()\n    "
    (finding,) = found(begin + line.format(made))
    assert f"`kept` keeps {count} with their history{where}" in finding.message


RECORDER = "class Recorder:\n    def __init__(self): self.kept = []\nrecorder = Recorder()\nfor row in x[:9]:\n    "


@pytest.mark.parametrize(
    "line",
    [
        "recorder.kept.append(net(row[None].exp()))",
        "recorder.kept.append(net(row.exp()).squeeze())",
        "kept.append(net(row.exp()))",
    ],
)
def test_what_may_be_joined_later_stays_a_tensor(line):
    (finding,) = found(f"kept = []\n{RECORDER}{line}")
    assert finding.fix.partition("  #")[0] == f"{line[:-1]}.detach())"


STEPS = """cell, heads = nn.GRUCell(8, 6), [nn.Linear(6, 1), nn.Linear(6, 1)]
def step(x, h):
    h = cell(x, h)
    return [head(h) for head in heads], h
h = torch.zeros(64, 6)
for _ in range(8):
    outs, h = step(x, h)
    sum(one.mean() for one in outs).backward(retain_graph=True)"""


def test_outputs_of_each_step_have_their_history_from_the_state():
    assert {one.fix for one in found(STEPS)} == {
        "h = h.detach()  # at the end of each step",
        "h = h.detach()  # at the end of each step; then backward() needs no retain_graph=True",
    }
    assert found(f"{STEPS}\n    h = h.detach()") == []


def test_graphs_that_backward_calls_left_do_not_wait_for_one():
    carried = (
        "state = torch.zeros(1, 8)\ncell = nn.Linear(8, 8)\nfor _ in range(8):\n"
        "    state = torch.add(state, cell(state).tanh())\n    state.sum().backward(retain_graph=True)"
    )
    (finding,) = found(carried)
    assert "reaches over 7 backward calls" in finding.message
    assert "stay alive" in finding.message


def test_small_graphs_are_told_in_small_units():
    model = "model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 1)).eval()"
    (finding,) = found(f"{model}\nkept = model(x)", slug="eval-without-no-grad")
    assert " KB " in finding.message or " B " in finding.message


AVERAGED = """smooth = None
for _ in range({}):
    one = step()
    smooth = one if smooth is None else 0.9 * smooth + 0.1 * one"""


@pytest.mark.parametrize(("turns", "words"), [(60, "over at least ")])
def test_backward_calls_that_were_only_counted_make_it_at_least(turns, words):
    (finding,) = found(AVERAGED.format(turns))
    assert words in finding.message


AGENT = """class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.kept = []
    def act(self):
        self.kept.append(self.fc(x[0]).squeeze())
agent = Agent()
opt = torch.optim.SGD(agent.parameters(), lr=0.01)"""
EPISODES = "for episode in range(6):\n    for _ in range(4):\n        agent.act()\n    finish(agent)"
STACKED = """def finish(agent):
    loss = -torch.stack(agent.kept[-4:]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()"""
ONE_BY_ONE = """def finish(who):
    terms = []
    for one in who.kept[-4:]:
        terms.append(-one)
    opt.zero_grad()
    sum(terms).backward()
    opt.step()"""


@pytest.mark.parametrize("finish", [STACKED, ONE_BY_ONE, STACKED + "\n    agent.kept.clear()"])
def test_what_a_loss_is_made_of_is_cleared_and_not_cut(finish):
    findings = found(AGENT, finish, EPISODES)
    cleared = ".clear()" in finish
    assert [one.fix.split("  #")[0] for one in findings] == ([] if cleared else ["agent.kept.clear()"])
    assert all("24 numbers" in one.message for one in findings)


def test_losses_that_are_read_again_under_the_name_of_the_loss_are_results():
    loop = "for _ in range(6):\n    opt.zero_grad()\n    loss = net(x).mean()\n    loss.backward()\n    opt.step()"
    (finding,) = found(f"losses = []\n{loop}\n    losses.append(loss)\nfor loss in losses:\n    print(float(loss))")
    assert finding.fix == "losses.append(loss.detach())"


def test_a_list_that_an_earlier_cell_stacks_keeps_tensors():
    loop = "losses = []\nfor _ in range(6):\n    losses.append(step())"
    (finding,) = found("def mean():\n    return torch.stack(losses).mean()", loop)
    assert finding.fix == "losses.append(step().detach())"


RECORD = """
import dataclasses
@dataclasses.dataclass
class Row:
    turn: int
    loss: torch.Tensor
"""
BY_HAND = """
class Row:
    def __init__(self, turn, loss):
        self.turn, self.loss = turn, loss
"""
LISTED = "rows = []\nfor turn in range(6):\n    rows.append(Row(turn, step()))"
LEARNERS = """
class Agent:
    def __init__(self, turn):
        self.loss = None
    def learn(self):
        self.loss = step()
agents = [Agent(turn) for turn in range(6)]
for agent in agents:
    agent.learn()
"""
TURNS = """
for episode in range(4):
    rows = []
    for turn in range(6):
        rows.append(Row(turn, net(x).square().mean()))
    opt.zero_grad()
    sum(row.loss for row in rows).backward()
    opt.step()
"""


@pytest.mark.parametrize("kind", [RECORD, BY_HAND])
@pytest.mark.parametrize("rows", [LISTED, "rows = [Row(turn, step()) for turn in range(6)]"])
def test_records_of_losses_are_a_collection(kind, rows):
    (finding,) = found(kind, rows)
    assert "`rows` keeps 6 losses with their history" in finding.message
    assert "each loss before it goes into rows" in finding.fix


@pytest.mark.parametrize(
    "cells",
    [
        (RECORD, LISTED.replace("step()", "step().item()")),
        (RECORD, LISTED.replace("step()", "step().detach()")),
        (LEARNERS,),
        (RECORD, TURNS),
        (RECORD, "last = Row(0, step())"),
    ],
)
def test_records_without_a_history_of_many_steps(cells):
    assert found(*cells) == []


EMA = """
class State: ema, alpha = 0.0, 0.1
state = State()
def step(state):
    loss = net(torch.randn(4, 8)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    state.ema = state.alpha * loss + 0.9 * state.ema"""


def test_one_tensor_is_spoken_of_as_one():
    setup = "import torch\nnet = torch.nn.Linear(8, 4)\nopt = torch.optim.SGD(net.parameters(), lr=.1)"
    loop = "for _ in range(30):\n    step(state)"
    (finding,) = findings_in(setup, EMA, loop, slug="graph-retained-in-list", min_bytes=0)
    assert finding.fix == "state.ema = state.ema.item()  # at the end of each step"
    assert findings_in(setup, EMA, f"{loop}\n    {finding.fix}", min_bytes=0, fails=False) == []


CAM = """\
class Cam:
    def __init__(self, model, layer):
        self.model, self.activations, self.gradients = model, [], []
        layer.register_forward_hook(lambda m, i, o: self.activations.append(o))
        layer.register_full_backward_hook(lambda m, gi, go: self.gradients.append(go[0]))
    def explain(self, x):
        self.model(x).sum().backward()
        return self.activations[-1].sum().item() * self.gradients[-1].sum().item()
deep = nn.Sequential(nn.Linear(8, 2048), nn.ReLU(), nn.Linear(2048, 1))
cam = Cam(deep, deep[0])"""


def test_the_tensors_themselves_and_all_that_hooks_fill_are_told():
    (finding,) = found(CAM, "maps = [cam.explain(torch.rand(64, 8)) for _ in range(6)]")
    assert "graph nodes, and the tensors themselves, 3.00 MB, stay alive" in finding.message
    assert finding.message.endswith(" Hooks fill `cam.gradients`, 3.00 MB, too.")
    assert finding.fix == "self.activations.append(o.detach())"


def test_losses_are_too_small_to_be_told_of_themselves():
    (finding,) = found("losses = [step() for _ in range(6)]")
    assert "graph nodes stay alive" in finding.message


EPISODE = """
from torch.distributions import Categorical
policy = nn.Linear(4, 2)
adam = torch.optim.Adam(policy.parameters())
class Episode:
    def __init__(self):
        self.log_probs = []
def rollout(ep):
    for _ in range(6):
        dist = Categorical(logits=policy(torch.randn(4)))
        {append}
    return ep
def policy_loss(ep):
    return -torch.{joined}.sum()
"""
UPDATE = "ep = rollout({made})\nloss = policy_loss(ep)\nadam.zero_grad()\n{then}"


@pytest.mark.parametrize(
    ("append", "kept"),
    [
        ("logp = dist.logits[0]\n        ep.log_probs.append(logp)", "ep.log_probs"),
        ("ep.log_probs.append(dist.log_prob(dist.sample()))", "ep.log_probs"),
        ("ep['logits'].append(dist.logits[0])", "ep['logits']"),
    ],
)
@pytest.mark.parametrize("way", ["tensor", "stack"])
def test_what_a_function_makes_a_loss_of_waits_for_it(append, kept, way):
    """A number in place of each would break the loss, also where `torch.tensor` has cut it off by now."""
    made = "Episode()" if "ep.log" in kept else "{'logits': []}"
    setup = EPISODE.format(append=append, joined=f"{way}({kept})")
    cells = (setup, UPDATE.format(made=made, then="loss.backward()\nadam.step()"))
    assert not findings_in(SETUP, *cells, slug="graph-retained-in-list", min_bytes=0, fails=way == "tensor")


def test_log_probabilities_wait_for_the_cell_with_the_loss():
    append = "ep.log_probs.append(dist.log_prob(dist.sample()))"
    assert not found(EPISODE.format(append=append, joined="stack(ep.log_probs)"), "ep = rollout(Episode())")


def test_what_a_function_only_averages_is_a_record():
    setup = "kept = []\ndef mean():\n    return sum(kept) / len(kept)\n"
    loop = "for _ in range(6):\n    out = net(x).square().mean()\n    kept.append(out)\nprint(mean())"
    assert [one.subject for one in found(setup, f"net.eval()\n{loop}")] == ["kept"]


DEQUE = LISTED.replace("rows = []", "import collections\nrows = collections.deque(maxlen=50)")


@pytest.mark.parametrize("record", [RECORD, BY_HAND])
def test_records_in_a_deque(record):
    (finding,) = found(record, DEQUE)
    assert finding.subject == "rows"
    assert not found(record, DEQUE.replace("step()", "step().item()"))
    assert not found(record, DEQUE.replace("range(6)", "range(1)"))


@pytest.mark.parametrize("epochs", [1, 2, 9, 30])
def test_a_list_that_each_epoch_makes_anew(epochs):
    (finding,) = found(
        f"for e in range({epochs}):\n    kept = []\n    for _ in range(12):\n        kept.append(step())"
    )
    assert finding.severity == "hint"
    assert "keeps 12 losses" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        "kept = []\n    for r in x[:12]:\n        kept.append(net(r).square().mean())\n    sum(kept).backward()",
        "kept = [net(r).square().mean() for r in x[:12]]\n    torch.stack(kept).mean().backward()",
        "kept = []\n    for r in net(x)[:12]:\n        kept.append(r.square().mean())\n    sum(kept).backward()",
        (
            "kept = []\n    for one in several:\n        loss = one(x).square().mean()\n        loss.backward()\n"
            "        kept.append(loss)"
        ),
        "kept = []\n    for _ in range(12):\n        kept.append(step().item())",
        "kept = []\n    for _ in range(12):\n        kept.append(step().detach())",
    ],
)
def test_parts_of_one_step_and_numbers_are_quiet(body):
    cell = f"several = [nn.Linear(8, 1) for _ in range(5)]\nfor e in range(20):\n    opt.zero_grad()\n    {body}"
    assert not found(f"{cell}\n    opt.step()")


ROLLOUT = """\
import torch
w = torch.full((256,), 0.5, requires_grad=True)
p, v = torch.rand(64, 256), torch.zeros(64, 256)
for t in range(24):
    {}
    {}"""
BACK = "(p - 1).pow(2).mean().backward(retain_graph=True)"


@pytest.mark.parametrize(
    ("step", "back", "ends"),
    [
        ("p = p + torch.sin(p) * w", BACK, ["; then backward() needs no retain_graph=True"]),
        ("v = v - w * p; p = p + v", BACK, ["; then backward() needs no retain_graph=True"]),
        ("p = p + torch.sin(p) * w", f"for _ in range(2): {BACK}", ["# at the end of each step"]),
    ],
)
def test_that_the_graph_need_not_be_retained_is_said_where_nothing_else_wants_it(step, back, ends):
    found = findings_in(ROLLOUT.format(step, back), slug="graph-retained-in-list")
    assert [one.fix.endswith(end) for one, end in zip(found, ends, strict=True)] == [True] * len(ends)


MEMORY = """\
import torch
from torch import nn
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 4)
        self.cells, self.last, self.shown, self.total = torch.zeros(5, 4), torch.zeros(1, 4), None, torch.zeros(())
    def forward(self, x):
        h = self.key(torch.cat([x, self.last], 1)).tanh()
        w = torch.softmax(h @ self.cells.t(), 1)
        self.cells = self.cells + w.t() @ h
        self.last = w @ self.cells
        return self.last
    def learn(self, x):
        loss = self(x).square().mean()
        loss.backward(RETAINED)  # in the class
        return loss
    def fit(self, xs):
        for x in xs:
            self.total += self.learn(x)
            AT_THE_END
memory = Memory()
"""
OUTSIDE = "for _ in range(12):\n    memory(torch.randn(1, 4)).square().mean().backward(RETAINED)\n    AT_THE_END"


@pytest.mark.parametrize(("cell", "name"), [(OUTSIDE, "memory"), ("memory.fit(torch.randn(12, 1, 4))", "self")])
def test_all_states_of_a_step_are_detached_together_by_the_names_that_it_has(cell, name):
    program = f"{MEMORY}\n{cell}"
    bad = program.replace("RETAINED", "retain_graph=True").replace("AT_THE_END", "pass")
    found = findings_in(bad, slug="graph-retained-in-list", fails=False, min_bytes=0)
    fixes = [one.fix for one in found if "\n" in one.fix]
    lines = [line.partition("  #")[0] for fix in fixes for line in fix.splitlines()]
    assert sorted(lines) == [f"{name}.{one} = {name}.{one}.detach()" for one in ("cells", "last")]
    good = program.replace("RETAINED", "").replace("AT_THE_END", "; ".join(lines)).replace("+= self.learn(x)", "+= 0")
    assert findings_in(good, slug="graph-retained-in-list", fails=False, min_bytes=0) == []


def test_a_total_that_a_method_of_the_object_adds_to_is_changed_in_its_line():
    program = f"{MEMORY}memory.fit(torch.randn(12, 1, 4))".replace("RETAINED", "").replace("AT_THE_END", "pass")
    program = program.replace("loss = self(x)", "self.cells, self.last = torch.zeros(5, 4), x * 0; loss = self(x)")
    found = findings_in(program, slug="graph-retained-in-list", fails=False, min_bytes=0)
    assert [one.fix for one in found] == ["self.total += self.learn(x).item()"]


def test_a_penalty_on_the_parameters_waits_for_its_loss():
    setup = "import torch\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))"
    cell = "penalty = torch.zeros(())\nfor p in net.parameters():\n    penalty = penalty + p.norm()"
    assert not findings_in(setup, cell, min_bytes=0, fails=False)
    again = cell.replace("for p", "for _ in range(3):\n  for p").replace("\n    p", "\n      p")
    assert findings_in(setup, again, min_bytes=0, fails=False)


ADDED = """\
class Keeper: total = 0
keeper, total = Keeper(), 0
def add(net):
    {}
    for _, p in net.named_parameters():
        {}
for _ in range({}): add(net)"""


@pytest.mark.parametrize(
    ("begin", "line", "count", "told"),
    [
        ("global total", "total = total + net(x).mean() * p.sum()", 3, True),
        ("pass", "keeper.total += net(x).mean() * p.sum()", 3, True),
        ("global total", "total = total + net(x).mean() * p.sum()", 1, False),
        ("global total; total = 0", "total = total + net(x).mean() * p.sum()", 3, False),
        ("keeper.total = 0", "keeper.total += net(x).mean() * p.sum()", 3, False),
        ("pass", "keeper.total = keeper.total + p.norm() + p.abs().sum()", 1, False),
        ("pass", "keeper.total += p.norm(); keeper.total += p.abs().sum()", 1, False),
        ("pass", "keeper.total += p.requires_grad_(p.ndim > 1).norm() + net(x).mean()", 1, False),
        ("pass", "keeper.total = keeper.total + p.norm() + p.abs().sum()", 3, True),
    ],
)
def test_a_penalty_that_goes_on_from_call_to_call(begin, line, count, told):
    net = "net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))"
    cells = SETUP, net, ADDED.format(begin, line, count)
    assert bool(findings_in(*cells, slug="graph-retained-in-list", min_bytes=0, fails=False)) == told


RESET = """\
class Elastic:
    def reset(self):
        self.total = 0.0
    def add(self, net):
        for p in net.parameters():
            self.total = self.total + p.norm() + p.abs().sum()
one = Elastic()
{}"""


@pytest.mark.parametrize(
    ("calls", "told"), [("one.reset()\none.add(net)", False), ("one.reset()\nfor _ in range(3): one.add(net)", True)]
)
def test_a_penalty_that_another_method_begins(calls, told):
    net = "net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))"
    slug = "graph-retained-in-list"
    found = findings_in(SETUP, net, RESET.format(calls), slug=slug, min_bytes=0, fails=False)
    fix = "self.total = self.total + (p.norm() + p.abs().sum()).item()"
    assert [one.fix.partition("  #")[0] for one in found] == [fix] * told


TWO_LOSSES = """
policy, value = nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.SGD([*policy.parameters(), *value.parameters()], lr=0.01)
entropy, log_probs = 0, []
for _ in range(10):
    dist = torch.distributions.Categorical(logits=policy(torch.randn(400, 8)).exp())
    log_probs.append(dist.log_prob(dist.sample()).mean())
    entropy = entropy + dist.entropy().mean()
actor_loss = -torch.stack(log_probs).mean() - 0.01 * entropy
critic_loss = value(x).square().mean()
opt.zero_grad()
actor_loss.backward(retain_graph={retain})
critic_loss.backward()
opt.step()
del log_probs, actor_loss, dist
"""


@pytest.mark.parametrize(("retain", "bonus", "told"), [(True, "entropy", 0), (False, "entropy", 0), (True, "1.0", 1)])
def test_a_part_of_a_loss_that_was_differentiated_waits_for_nothing(retain, bonus, told):
    cell = TWO_LOSSES.format(retain=retain).replace("0.01 * entropy", f"0.01 * {bonus}")
    assert len(found(cell)) == told
