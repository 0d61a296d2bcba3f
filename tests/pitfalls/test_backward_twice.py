"""A graph that is differentiated twice, as people come to it."""
# ruff: noqa: E501, ISC004 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import a_notebook, findings_in

START = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.rand(16, 3), torch.rand(16, 1)
"""

FOUND = {
    "cell run twice": (["loss = net(x).exp().mean()", "loss.backward()", "loss.backward()"], 1, "loss", "loss"),
    "function of an earlier cell": (
        ["def finish(value):\n    value.backward()", "energy = net(x).exp().mean()\nfinish(energy)", "finish(energy)"],
        2, "value", "energy",
    ),
    "prediction before the loop": (
        ["pred = net(x)\nfor _ in range(3):\n    loss = nn.functional.mse_loss(pred, y)\n    opt.zero_grad()\n"
         "    loss.backward()\n    opt.step()"],
        5, "pred", "line 1",
    ),
    "running total": (
        ["total = 0\nfor _ in range(3):\n    loss = net(x).exp().mean()\n    total = total + loss\n    opt.zero_grad()\n"
         "    total.backward()"],
        6, "total", "total",
    ),
    "shared by two losses": (
        ["def step():\n    code = net[:2](x)\n    first = net[2](code).exp().mean()\n    first.backward()\n"
         "    second = code.pow(2).mean()\n    second.backward()", "step()"],
        6, "code", "first",
    ),
    "attribute made once in a class": (
        ["class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
         "        self.raw = nn.Parameter(torch.rand(3, 3))\n        self.soft = self.raw.softmax(0)\n\n"
         "    def forward(self, x):\n        return x @ self.soft\n\n\nmodel = Model()",
         "for _ in range(2):\n    loss = model(x).pow(2).mean()\n    loss.backward()"],
        3, "model.soft", "soft",
    ),
    "grad twice": (
        ["def slope(f):\n    return torch.autograd.grad(f, net[0].weight)", "f = net(x).exp().sum()\na = slope(f)\nb = slope(f)"],
        2, "f", "f",
    ),
}  # fmt: skip

SILENT = {
    "kept graph": "loss = net(x).exp().mean()\nloss.backward(retain_graph=True)\nloss.backward()",
    "anew each time": "for _ in range(3):\n    loss = net(x).exp().mean()\n    loss.backward()",
    "caught": "loss = net(x).exp().mean()\nloss.backward()\ntry:\n    loss.backward()\nexcept RuntimeError:\n    pass",
    "nothing was saved": "s = net[0].weight.sum()\ns.backward()\ns.backward()",
    "second derivative": (
        "w = torch.rand(3, requires_grad=True)\n(g,) = torch.autograd.grad(w.exp().sum(), w, create_graph=True)\n"
        "g.pow(2).sum().backward()"
    ),
    "detached for the judge": (
        "for _ in range(2):\n    code = net[:2](x)\n    net[2](code.detach()).exp().mean().backward()\n"
        "    net[2](code).exp().mean().backward()"
    ),
    "another error": "loss = net(x).exp().mean()\nloss.backward()\nraise RuntimeError('backward failed')",
}


def found(cells):
    with a_notebook() as notebook:
        for cell in (START, *cells):
            run = notebook.run(cell)
        return [finding for finding in run.findings if finding.severity == "error"]


@pytest.mark.parametrize("name", FOUND)
def test_found_with_the_name_and_the_line(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,) = found(cells)
    assert (finding.slug, finding.line, finding.subject) == ("backward-twice", line, subject)
    assert f"`{mentions}" in finding.message or mentions in finding.message


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]]) == []


def test_two_losses_with_optimizers_of_their_own_are_not_added():
    with a_notebook() as notebook:
        notebook.run(START)
        notebook.run("judge = nn.Linear(1, 1)\nown = torch.optim.SGD(judge.parameters(), lr=0.1)")
        run = notebook.run(
            "fake = net(x)\nd_loss = judge(fake).exp().mean()\nown.zero_grad()\nd_loss.backward()\nown.step()\n"
            "g_loss = judge(fake).exp().mean()\ng_loss.backward()"
        )
    (fix,) = [finding.fix for finding in run.findings if finding.slug == "backward-twice"]
    assert fix.startswith("d_loss = judge(fake.detach()).exp().mean()  # line 2: ")


TWO = """\
for _ in range(3):
    code = net[:2](x)
    one, two = net[2](code).exp().mean(), code.exp().sum()
    one.backward()
    two.backward()"""


def test_two_losses_of_one_pass_are_added():
    (finding,) = found([TWO])
    assert (finding.subject, finding.line, finding.fix) == ("two", 5, "(one + two).backward()  # once for both")
    assert (
        "`two` shares a part of its graph with `one`, and `one.backward()` in line 4 had freed it." in finding.message
    )


SHARED = """
import torch
body, heads = torch.nn.Linear(3, 4), {name: torch.nn.Linear(4, 1) for name in "ab"}
for _ in range(2):
    hidden = body(torch.randn(5, 3)).tanh()
    losses = %s
    for %s
"""


@pytest.mark.parametrize(
    ("made", "loop", "fix"),
    [
        (
            "{n: h(hidden).mean() for n, h in heads.items()}",
            "n in losses: losses[n].backward()",
            "sum(losses.values())",
        ),
        (
            "{n: h(hidden).mean() for n, h in heads.items()}",
            "n, l in losses.items(): l.backward()",
            "sum(losses.values())",
        ),
        ("[h(hidden).mean() for h in heads.values()]", "l in losses: l.backward()", "sum(losses)"),
    ],
)
def test_a_loop_over_losses_becomes_their_sum(made, loop, fix):
    (finding,) = findings_in(SHARED % (made, loop), slug="backward-twice", fails=True)
    assert finding.fix == f"{fix}.backward()  # once, in place of the loop"


def test_losses_that_stay_from_turn_to_turn_are_made_anew():
    code = "import torch\nw = torch.ones(3, requires_grad=True)\nlosses = [w.exp().sum(), w.exp().mean()]\n"
    code += "for _ in range(2):\n    for l in losses:\n        l.backward()\n"
    (finding,) = findings_in(code, slug="backward-twice", fails=True)
    assert not finding.fix.startswith("sum(")


GAN = """
import torch
from torch import nn
G, D = nn.Linear(5, 2), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
real = torch.randn(64, 2) + 2
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
"""
TURN = """
for step in range(3):
    fake = G(torch.randn(64, 5))
    {first}
    opt_d.zero_grad()
    d_loss = bce(D(real), ones) + bce(pred, zeros)
    d_loss.backward()
    {between}
    opt_g.zero_grad()
    g_loss = bce(pred, ones)
    g_loss.backward()
    {last}
    opt_g.step()
"""


def test_a_judge_answers_each_loss_anew():
    wrong = TURN.format(first="pred = D(fake)", between="", last="opt_d.step()")
    (finding,) = findings_in(GAN, wrong, fails=True)
    first, step, anew = (line.partition("  # ")[0] for line in finding.fix.splitlines())
    assert (finding.subject, first, step, anew) == ("pred", "pred = D(fake.detach())", "opt_d.step()", "pred = D(fake)")
    assert findings_in(GAN, TURN.format(first=first, between=f"{step}\n    {anew}", last=""), fails=False) == []


def test_what_has_no_name_is_given_one():
    wrong = TURN.format(first="pred = D(G(torch.randn(64, 5)))", between="opt_d.step()", last="")
    (finding,) = findings_in(GAN, wrong, fails=True)
    made, first, anew = (line.partition("  # ")[0] for line in finding.fix.splitlines())
    assert (made, anew) == ("made = G(torch.randn(64, 5))", "pred = D(made)")
    mended = TURN.format(first=f"{made}\n    {first}", between=f"opt_d.step()\n    {anew}", last="")
    assert findings_in(GAN, mended, fails=False) == []


def test_one_optimizer_for_both_takes_the_sum():
    together = "opt_g = opt_d = torch.optim.Adam([*G.parameters(), *D.parameters()])"
    wrong = TURN.format(first="pred = D(fake)", between="", last="")
    (finding,) = findings_in(GAN, together, wrong.replace("opt_g.zero_grad()", ""), fails=True)
    assert finding.fix.startswith("(d_loss + g_loss).backward()")


def test_a_quotient_that_is_differentiated_keeps_its_parentheses():
    loop = "total = 0\nfor i in range(1, 4):\n    total = total + net(x).exp().mean()\n    (total / i).backward()"
    (finding,) = findings_in(START, loop, slug="backward-twice", fails=True)
    assert finding.message.startswith("`(total / i).backward()` went back")
    assert "or (total / i).backward() once after the loop" in finding.fix


HEADS = """
trunk, heads = nn.Linear(3, 8), nn.ModuleDict({"age": nn.Linear(8, 1), "sex": nn.Linear(8, 1)})
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)
def train_step():
    opt.zero_grad()
    h = trunk(x).tanh()
    preds = {task: head(h) for task, head in heads.items()}
"""
EACH = "    for task in heads:\n        value = preds[task].exp().mean()\n        value.backward()\n    opt.step()"
APART = "    (preds['age'] - y).abs().mean().backward()\n    preds['sex'].exp().mean().backward()\n    opt.step()"


def test_losses_of_heads_are_added_in_the_loop_that_makes_them():
    (finding,) = findings_in(START, HEADS + EACH, "train_step()", slug="backward-twice", fails=True)
    assert "`value` shares a part of its graph, behind `preds` (line 7)" in finding.message
    assert "detach" not in finding.fix
    before, inside, after = finding.fix.splitlines()
    body = EACH.replace("    for", f"    {before}\n    for").replace("value.backward()", inside)
    mended = HEADS + body.replace("    opt.step()", f"    {after}\n    opt.step()")
    assert not findings_in(START, mended, "train_step()", fails=False)


def test_losses_of_heads_without_names_are_added():
    (finding,) = findings_in(START, HEADS + APART, "train_step()", slug="backward-twice", fails=True)
    assert finding.fix.startswith("((preds['age'] - y).abs().mean() + preds['sex'].exp().mean()).backward()")


JUDGED = """
judge = nn.Linear(1, 1)
own = torch.optim.SGD(judge.parameters(), lr=0.1)
def d_step(real, fake):
    loss = judge(fake).mean() - judge(real).mean()
    own.zero_grad()
    loss.backward()
    own.step()
def g_step(fake):
    loss = -judge(fake).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_the_call_that_wants_the_detached_one_is_shown():
    calls = "fake = net(x)\nd_step(y, fake)\ng_step(fake)"
    (finding,) = findings_in(START, JUDGED, calls, slug="backward-twice", fails=True)
    assert finding.fix.startswith("d_step(y, fake.detach())  # line 2 of cell 3: ")
    mended = calls.replace("d_step(y, fake)", finding.fix)
    assert not findings_in(START, JUDGED, mended, slug="backward-twice", fails=False)


MADE_IN_TURN = "    code = net[:2](x)\n    one, two = net[2](code).exp().mean(), code.exp().sum()\n"


@pytest.mark.parametrize(
    ("line", "subject", "fix"),
    [
        ("one.backward(); two.backward()", "two", "(one + two).backward()  # once for both"),
        ("(one / 2).backward(); (two / 2).backward()", "two", "(one / 2 + two / 2).backward()  # once for both"),
        ("one.backward(); (two - one).backward()", "one", "(one + (two - one)).backward()  # once for both"),
        ("one.backward(); two.backward(); (one * 2).backward()", "two", "(one + two + one * 2).backward()  # once for all"),
        ("net[2](code).exp().sum().backward(); code.exp().sum().backward()", "code",
         "(net[2](code).exp().sum() + code.exp().sum()).backward()  # once for both"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("head", ["for _ in range(2):\n", "if True:\n", "def turn():\n"])
def test_losses_of_one_line_are_added(head, line, subject, fix):
    end = "\nturn()" if "turn" in head else ""
    (finding,) = found([f"{head}{MADE_IN_TURN}    {line}{end}"])
    assert finding.fix == fix
    assert "shares a part of its graph with" in finding.message
    assert f"`{subject}`" in finding.message
    assert findings_in(START, f"{head}{MADE_IN_TURN}    {fix}{end}", fails=False) == []


@pytest.mark.parametrize(
    "cells",
    [
        ["two = net(x).exp().sum()\nfor _ in range(2):\n    one = net(x).exp().mean()\n    one.backward(); two.backward()"],
        ["two = net(x).exp().sum()", *["one = net(x).exp().mean()\none.backward(); two.backward()"] * 2],
    ],
)  # fmt: skip
def test_a_loss_from_before_the_line_is_made_anew(cells):
    (finding,) = found(cells)
    assert (finding.subject, " + " in finding.fix) == ("two", False)


ACTOR = """\
trunk, actor, critic = nn.Linear(3, 4), nn.Linear({width}, 2), nn.Linear({width}, 1)
def answer(x):
    {first}
    return torch.log_softmax(actor(x), 1)[:, 0], critic(x).squeeze(1)
returns = torch.rand(16)"""
STEP = """\
log_p, values = answer(x)
{}
value_loss = (values - returns).pow(2).mean()
policy_loss.backward()
value_loss.backward()"""
ADVANTAGES = {
    "named": ("adv = returns - values\npolicy_loss = -(adv * log_p).mean()", "adv = returns - values.detach()"),
    "inline": (
        "policy_loss = -((returns - values) * log_p).mean()",
        "policy_loss = -((returns - values.detach()) * log_p).mean()",
    ),
}


@pytest.mark.parametrize("first", ["x = trunk(x)", "pass"])
@pytest.mark.parametrize("name", ADVANTAGES)
def test_a_critic_that_is_a_baseline(name, first):
    setup = ACTOR.format(first=first, width=4 if "trunk" in first else 3)
    text, mended = ADVANTAGES[name]
    (finding,) = findings_in(START, setup, STEP.format(text))
    one, both = finding.fix.splitlines()
    assert one.startswith(f"{mended}  # line ")
    assert both == "(policy_loss + value_loss).backward()  # once for both"
    lines = STEP.format(text).splitlines()
    lines[int(one.split("line ")[1].split(":")[0]) - 1] = one
    assert not findings_in(START, setup, "\n".join([*lines[:-2], both]))


@pytest.mark.parametrize(
    "text",
    [
        "gap = returns - values\npolicy_loss = (gap * x[:, 0]).mean()",  # a weighted residual trains what it is of
        "policy_loss = -(returns * log_p).mean() + values.sum()",
        "adv = returns - values.detach()\npolicy_loss = -(adv * log_p).mean() + values.sum()",
    ],
)
def test_what_is_no_baseline_is_left_attached(text):
    (finding,) = findings_in(START, ACTOR.format(first="pass", width=3), STEP.format(text))
    assert finding.fix == "(policy_loss + value_loss).backward()  # once for both"


BOTH_LOSSES = """
def losses(d, g, real):
    dgz, dx = d(g(torch.randn(64, 5))), d(real)
    return bce(dx, ones) + bce(dgz, zeros), bce(dgz, ones)
"""
STEPS = """
for _ in range(2):
    d_loss, g_loss = losses(D, G, real)
    opt_d.zero_grad(); d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss.backward(); opt_g.step()
"""


def test_two_losses_of_one_function_with_a_step_between_them():
    (finding,) = findings_in(GAN, BOTH_LOSSES, STEPS, slug="backward-twice", fails=True)
    assert finding.message.startswith("`g_loss` shares a part of its graph with `d_loss`")
    made = "d(g(torch.randn(64, 5))"
    assert finding.fix == f"# d_loss from {made}.detach()), and g_loss from {made}) anew, after opt_d.step()"


ADVANTAGE = """
actor, critic = nn.Linear(3, 1), nn.Linear(3, 1)
{optimizers}
advantages = (y - critic(x)) ** 3
for _ in range(2):
    actor_loss = -(actor(x).exp() * advantages).mean()
    critic_loss = (critic(x) - y).pow(2).mean()
    for one in own: one.zero_grad()
    actor_loss.backward()
    own[0].step()
    critic_loss.backward()
    own[-1].step()
"""


@pytest.mark.parametrize(
    ("optimizers", "fix"),
    [
        (
            "own = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (actor, critic)]",
            "advantages = advantages.detach()",
        ),
        ("own = [torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)]", "advantages = ...  # line 4"),
    ],
)
def test_the_call_of_the_turn_before_is_named_and_no_other(optimizers, fix):
    (finding,) = findings_in(START, ADVANTAGE.format(optimizers=optimizers), slug="backward-twice", fails=True)
    assert "and `actor_loss.backward()` of the turn before had freed the graph behind `advantages`" in finding.message
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "steps", ["do.step()\n    eo.step()", "eo.step()\n    do.step()", "[one.step() for one in (do, eo)]"]
)
def test_what_a_later_step_trains_is_made_in_the_loop(steps):
    cell = (
        "enc, dec = nn.Linear(3, 2), nn.Linear(2, 3)\n"
        "eo, do = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (enc, dec))\nh = enc(x)\nfor epoch in range(3):\n"
        f"    loss = (dec(h).exp() - x).pow(2).mean()\n    eo.zero_grad()\n    do.zero_grad()\n    loss.backward()\n    {steps}"
    )
    (finding,) = findings_in(START, cell, slug="backward-twice", fails=True)
    assert finding.fix.startswith("h = ...  # line 3, moved into the loop")


@pytest.mark.parametrize(
    ("second", "fix"),
    [
        ("(out - y).abs().mean().backward()", "(net(x) - y).abs().mean().backward()"),
        ("other = (out - y).abs().mean()\n    other.backward()", "other = (net(x) - y).abs().mean()"),
    ],
)
@pytest.mark.parametrize("between", ["opt.first_step()", "opt.zero_grad()"])
def test_with_a_step_of_ones_own_between_the_two_the_pass_is_repeated(second, fix, between):
    own = "class Own(torch.optim.SGD):\n    def first_step(self):\n        pass\nopt = Own(net.parameters(), 0.1)"
    code = f"for _ in range(2):\n    out = net(x)\n    loss = out.exp().mean()\n    loss.backward()\n    {between}\n    {second}"
    (finding,) = [f for f in findings_in(START, own, code) if f.slug == "backward-twice"]
    assert finding.fix == f"{fix}  # another pass, after {between}"


@pytest.mark.parametrize(
    ("before", "names", "fix"),
    [
        (
            "low, high = net(x).exp().chunk(2)",
            "`low` and `high` (line 1)",
            "low, high = net(x).exp().chunk(2)  # line 1",
        ),
        ("low, high = net(x).exp(), 1.0", "`low` (line 1)", "low = ...  # line 1"),
    ],
)
def test_what_is_made_together_is_named_together(before, names, fix):
    code = f"{before}\nfor _ in range(2):\n    loss = (low + high).log().mean()\n    loss.backward()"
    (finding,) = [f for f in findings_in(START, code) if f.slug == "backward-twice"]
    assert (f"computed from {names}" in finding.message, finding.fix.startswith(fix)) == (True, True), finding


@pytest.mark.parametrize(
    ("trained", "fix"),
    [
        ("[*enc.parameters(), *dec.parameters()]", "k = ...  # h = ... (line 3) and line 5, all moved into the loop"),
        ("dec.parameters()", "k = k.detach()  # behind line 5; or, if it is to be trained: h = ... (line 3) and line"),
    ],
)
def test_what_is_made_of_another_variable_is_moved_into_the_loop_with_it(trained, fix):
    cell = (
        "enc, dec = nn.Linear(3, 2), nn.Linear(2, 3)\n"
        f"opt = torch.optim.SGD({trained}, lr=0.1)\nh = enc(x)\n\nk = torch.tanh(h)\nfor epoch in range(3):\n"
        "    loss = (dec(k).exp() - x).pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    )
    (finding,) = findings_in(START, cell, slug="backward-twice", fails=True)
    assert finding.fix.startswith(fix)
    if ".detach()  #" in finding.fix:
        mended = cell.replace("tanh(h)", f"tanh(h)\n{finding.fix}")
        assert not findings_in(START, mended, slug="backward-twice", fails=False)


EPISODES = """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.kept, self.rewards, self.seen = nn.Linear(3, 1), [], [], []

    def forward(self, x):
        return self.lin(x).exp()


policy = Policy()
opt = torch.optim.SGD(policy.parameters(), lr=1e-3)


def finish():
    returns = [sum(policy.rewards[i:]) for i in range(len(policy.rewards))]
    loss = sum(k * r for k, r in zip(policy.kept, returns)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    policy.seen.append(loss.item())
"""
PLAYED = """
for episode in range(2):
    for t in range({steps}):
        policy.kept.append(policy(torch.rand(1, 3)))
        policy.rewards.append(1.0)
    finish()
"""
IN_LOOP = """
def train():
    kept, rewards, seen = [], [], []
    for episode in range(2):
        for t in range(3):
            kept.append(net(torch.rand(1, 3)).exp().sum())
            rewards.append(1.0)
        loss = sum(k * r for k, r in zip(kept, rewards))
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen.append(loss.item())


opt = torch.optim.SGD(net.parameters(), lr=1e-3)
train()
"""
# What is only a history of the losses is read, too.
READ_AGAIN = f"{EPISODES}    print(policy.seen[-3:])\n"
SHOWN = "        print(seen[-3:])\n        seen.app"


@pytest.mark.parametrize(
    ("cells", "after", "names"),
    [
        ([EPISODES, PLAYED.format(steps=3)], "    finish()\n", ("policy.kept", "policy.rewards")),
        ([EPISODES, PLAYED.format(steps=20)], "    finish()\n", ("policy.kept", "policy.rewards")),
        ([IN_LOOP], "        opt.step()\n", ("kept", "rewards")),
        ([READ_AGAIN, PLAYED.format(steps=3)], "    finish()\n", ("policy.kept", "policy.rewards")),
        ([IN_LOOP.replace("        seen.app", SHOWN)], "        opt.step()\n", ("kept", "rewards")),
    ],
)
def test_what_the_turn_before_has_collected_is_to_be_let_go(cells, after, names):
    (finding,) = found(cells)
    assert (finding.slug, finding.subject) == ("backward-twice", names[0])
    fix, _, when = finding.fix.partition("  # ")
    assert fix == "; ".join(f"{one}.clear()" for one in names)
    assert when == "at the end of each turn, after the step"
    indent = " " * (len(after) - len(after.lstrip()))
    assert not found([*cells[:-1], cells[-1].replace(after, f"{after}{indent}{fix}\n")])


def test_what_was_collected_before_the_loop_is_made_anew():
    cell = "kept = []\nkept.append(net(x).exp())\nfor _ in range(2):\n    loss = sum(kept).mean()\n    loss.backward()"
    (finding,) = found([cell])
    assert ".clear()" not in finding.fix
