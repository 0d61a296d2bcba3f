"""Terms that a loss adds up as numbers, and fixes of losses that are computed from choices, draws and NumPy."""

import pytest

from tests.cells import findings_in
from torch_inspector.observe import standpoints

# ruff: noqa: E501, ISC004
START = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, judge = nn.Linear(5, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*net.parameters(), *judge.parameters()], lr=0.1)
x, y = torch.randn(12, 5), torch.randint(0, 3, (12,))
def variation(out):
    return (out[1:] - out[:-1]).square().mean()
"""
LOOP = "for _ in range(3):\n    opt.zero_grad()\n{}\n    loss.backward()\n    opt.step()\n"


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is found must not depend on what else the machine does."""
    monkeypatch.setattr(standpoints, "_TIME_S", 1.0)


def found(body):
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return findings_in(START, LOOP.format(lines), slug="graph-cut")


@pytest.mark.parametrize(
    ("body", "term", "fix"),
    [
        ("out = net(x)\nloss = F.cross_entropy(out, y) + 0.5 * variation(out).item()", "0.5 * variation(out).item()",
         "loss = F.cross_entropy(out, y) + 0.5 * variation(out)"),
        ("out = net(x)\nloss = F.cross_entropy(out, y)\nloss += 0.1 * float(variation(out))",
         "0.1 * float(variation(out))", "variation(out)"),
        ("out = net(x)\nlarge = net.weight.norm().item()\nloss = F.cross_entropy(out, y) + 0.01 * large",
         "0.01 * large", "large = net.weight.norm()"),
        ("out = net(x)\nmean = out.softmax(1).detach().numpy().mean(0)\nspread = float(abs(mean).sum())\n"
         "loss = F.cross_entropy(out, y) + spread", "spread", "spread = abs(mean).sum()"),
        ("out = net(x)\npred = out.argmax(1)\nwrong = (pred != y).sum() / len(y)\nloss = F.cross_entropy(out, y) + wrong",
         "wrong", "compute the loss from the scores"),
        ("out = net(x)\nloss = F.cross_entropy(out, y) - 0.1 * out.softmax(1).std().detach()",
         "0.1 * out.softmax(1).std().detach()", "loss = F.cross_entropy(out, y) - 0.1 * out.softmax(1).std()"),
    ],
)  # fmt: skip
def test_a_term_without_history(body, term, fix):
    (finding,) = found(body)
    assert f"`{term}` is a term of `loss`" in finding.message
    assert finding.severity == "warning"
    assert fix in finding.fix


@pytest.mark.parametrize(
    "body",
    [
        # A baseline, a weight, a divisor, and a target are factors or stand in a distance.
        "out = net(x)\nvalue = judge(out)\nscore = out.logsumexp(1)\n"
        "loss = -((y - value.detach()[:, 0]) * score).mean() + F.mse_loss(value[:, 0], y.float())",
        "out = net(x)\none, two = F.cross_entropy(out, y), variation(out)\nloss = one + two * (one / two).detach()",
        "out = net(x)\nsoft = out.softmax(1)\nhard = soft + (soft.round() - soft).detach()\nloss = (hard * out).mean()",
        "out = net(x)\nnext_value = judge(out).detach()\ngap = 1 + 0.9 * next_value - judge(out)\nloss = gap.pow(2).mean()",
        # The same term with its history, a normaliser that is taken out again, the entropy of a target.
        "out = net(x)\ntwo = variation(out)\nloss = F.cross_entropy(out, y) + two - two.detach()",
        "out = net(x)\nhigh = out.max().item()\nloss = high + (out - high).exp().sum().log() - out[:, 0].sum()",
        "out = net(x)\np = out.softmax(1).detach()\n"
        "loss = -(p * net(x + 0.1).log_softmax(1)).sum(1).mean() + 1.0 * (p * p.log()).sum(1).mean()",
        # A model that the loop names, an estimate that is shown as a loss, a record.
        "out = net(x)\nfor critic, real in ((judge, out),):\n"
        "    loss = critic(real).mean() - 0.5 * critic(real.detach() + 1).pow(2).mean()",
        "out = net(x)\nloss = judge(x[:, :3]).mean().detach() - judge(out).mean()",
        "out = net(x)\nloss = F.cross_entropy(out, y)\nshown = loss + 0.1 * variation(out).item()",
        "out = net(x)\nloss = F.cross_entropy(out, y) + 0.1 * out.shape[0] + 0.1 * len(out)",
    ],
)
def test_what_is_no_lost_term(body):
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "term", "fix"),
    [
        ("two = variation(out)\nloss = torch.stack([one, torch.tensor(two.item())]).sum()", "torch.tensor(two.item())",
         "loss = torch.stack([one, two]).sum()"),
        ("two = variation(out)\nlosses = [one, torch.tensor(float(two.item()))]\nloss = torch.mean(torch.stack(losses))",
         "torch.tensor(float(two.item()))", "losses = [one, two]"),
        ("two = variation(out)\nloss = torch.cat([one.view(1), torch.tensor([two.item()])]).sum()",
         "torch.tensor([two.item()])", "loss = torch.cat([one.view(1), two.reshape(1)]).sum()"),
        ("two = variation(out)\nnumber = two.item()\nloss = torch.stack([one, torch.tensor(number)]).sum()",
         "torch.tensor(number)", "number = two  # without .item(), and number in place of torch.tensor(number)"),
        ("two = variation(out)\nloss = one + torch.tensor(two.item(), requires_grad=True)",
         "torch.tensor(two.item(), requires_grad=True)", "loss = one + two"),
        ("losses = []\nlosses.append(one)\nlosses.append(variation(out).item())\nloss = sum(losses) / len(losses)",
         "variation(out).item()", "losses.append(variation(out))"),
        ("losses = {'ce': one}\nlosses['reg'] = float(variation(out))\nloss = sum(losses.values())",
         "float(variation(out))", "losses['reg'] = variation(out)"),
        ("losses = {'ce': one, 'reg': variation(out).item()}\nloss = losses['ce'] + 0.1 * losses['reg']",
         "0.1 * losses['reg']", "losses = {'ce': one, 'reg': variation(out)}"),
        ("losses = {'ce': one, 'reg': variation(out).item()}\nrates = {'ce': 1.0, 'reg': 0.1}\n"
         "loss = sum(rates[key] * term for key, term in losses.items())",
         "variation(out).item()", "losses = {'ce': one, 'reg': variation(out)}"),
        ("losses = [one, variation(out).detach()]\nloss = sum(w * term for w, term in zip([1.0, 0.1], losses))",
         "variation(out).detach()", "losses = [one, variation(out)]"),
        ("losses = dict(ce=one, reg=variation(out).item())\nloss = 0\nfor key, term in losses.items():\n    loss += term",
         "variation(out).item()", "losses = dict(ce=one, reg=variation(out))"),
    ],
)  # fmt: skip
def test_a_number_among_the_losses_of_a_list(body, term, fix):
    (finding,) = found(f"out = net(x)\none = F.cross_entropy(out, y)\n{body}")
    assert f"`{term}` is a term of `loss`" in finding.message
    assert finding.fix.startswith(f"{fix}  # without " if "#" not in fix else fix)


def test_a_number_among_the_losses_that_a_function_gives_back():
    function = (
        "def parts(out, y):\n    reg = variation(out).item()\n    return {'ce': F.cross_entropy(out, y), 'reg': reg}"
    )
    body = "    losses = parts(net(x), y)\n    loss = sum(losses.values())"
    (finding,) = findings_in(START + function, LOOP.format(body), slug="graph-cut")
    assert finding.fix == "reg = variation(out)  # without .item()"


@pytest.mark.parametrize(
    "body",
    [
        # Records beside the losses, under other keys, filtered, later, and earlier under the same name.
        "losses = {'ce': one, 'two': two}\nloss = sum(losses.values())\nshown = {k: v.item() for k, v in losses.items()}",
        "losses = {'ce': one, 'wrong': (out.argmax(1) != y).float().mean().item()}\nloss = losses['ce'] + two",
        "terms = {'loss_a': one, 'b': two.item()}\nloss = sum(v for k, v in terms.items() if k.startswith('loss'))",
        "terms = {'loss_a': one, 'b': two.item()}\nloss = 0\nfor k, v in terms.items():\n"
        "    if k.startswith('loss'):\n        loss = loss + v",
        "losses = [one, two]\nloss = torch.stack(losses).sum()\nlosses = [term.item() for term in losses]",
        "losses = []\nlosses.append(variation(net(x + 1)).item())\nshown = sum(losses)\n"
        "losses = []\nlosses.append(one)\nlosses.append(two)\nloss = sum(losses)",
        # Numbers as weights, numbers of no model, terms that are shown as one, a term with its size taken out.
        "losses = [one, two]\nlarge = max(term.item() for term in losses)\nrates = [term.item() / large for term in losses]\n"
        "loss = sum(rate * term for rate, term in zip(rates, losses))",
        "losses = [one, torch.tensor(0.5), 0.1 * len(x)]\nloss = sum(losses)",
        "losses = [one, two / two.detach()]\nloss = torch.stack(losses).sum()",
        "loss = torch.stack([one, variation(out).detach()]).sum()",
        # The largest of them is no sum.
        "loss = one + 0.0 * two + torch.stack([one, torch.tensor(two.item())]).max()",
    ],
)  # fmt: skip
def test_lists_of_losses_without_a_lost_term(body):
    assert found(f"out = net(x)\none, two = F.cross_entropy(out, y), variation(out)\n{body}") == []


PARTS = """
def parts_of(out, y):
    return {'ce': F.cross_entropy(out, y), 'reg': variation(out).item()}
def strip(parts):
    parts.pop('reg')
"""


@pytest.mark.parametrize(
    "body",
    [
        "parts = parts_of(out, y)\nreg = parts.pop('reg')\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\ndel parts['reg']\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nstrip(parts)\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nrest = parts\nrest.pop('reg')\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nparts['reg'] = variation(out)\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nparts['reg'] = variation(out)\nloss = parts['ce'] + 0.1 * parts['reg']",
        "parts = parts_of(out, y)\nfor key in ['reg']:\n    parts[key] = variation(out)\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nparts |= {'reg': variation(out)}\nloss = sum(parts.values())",
        "parts = parts_of(out, y)\nparts = {**parts, 'reg': variation(out)}\nloss = sum(parts.values())",
        "parts = {'reg': variation(out).item()}\nparts.update(reg=variation(out))\nloss = one + 0.1 * parts['reg']",
        "parts = {'reg': variation(out).item()}\nprint(parts)\nparts.clear()\nparts['ce'] = one\n"
        "loss = sum(parts.values())",
        "terms = [one]\nterms.append(variation(out).item())\nprint(terms.pop())\nloss = sum(terms)",
        "terms = [one, variation(out).item()]\nterms[1] = variation(out)\nloss = sum(terms)",
        "terms = [one, variation(out).item()]\nterms[1:] = [variation(out)]\nloss = sum(terms)",
    ],
)  # fmt: skip
def test_records_that_are_taken_out_or_replaced_before_the_sum(body):
    lines = "\n".join(f"    {line}" for line in f"out = net(x)\none = F.cross_entropy(out, y)\n{body}".split("\n"))
    assert findings_in(START + PARTS, LOOP.format(lines), slug="graph-cut") == []


def fix_of(body):
    (finding,) = found(body)
    return finding


def test_positions_beside_the_values_are_named():
    finding = fix_of(
        "_, guess = torch.max(net(x), 1)\nloss = nn.MSELoss()(guess.float(), y.float())\nloss.requires_grad = True"
    )
    assert "`torch.max(net(x), 1)[1]` gives positions" in finding.message
    assert finding.fix.startswith("loss = nn.CrossEntropyLoss()(net(x), y)")


def test_data_is_taken_out_of_the_line():
    finding = fix_of("loss = F.cross_entropy(net(x).data, y)")
    assert finding.fix == "loss = F.cross_entropy(net(x), y)  # without .data"


def test_draws_are_learned_by_their_chances():
    finding = fix_of(
        "p = net(x).softmax(1)\na = torch.multinomial(p, 1).squeeze(1)\nr = (a == 1).float()\nloss = -r.mean()"
    )
    assert "draws" in finding.message
    assert finding.fix == "loss = -(torch.distributions.Categorical(p).log_prob(a) * r).mean()"


def test_a_way_through_numpy_is_named_where_it_begins():
    finding = fix_of(
        "gap = (net(x).detach().numpy() - x[:, :3].numpy()) ** 2\nloss = torch.tensor(gap.mean(), requires_grad=True)"
    )
    assert "`net(x).detach().numpy()` leaves PyTorch" in finding.message
    assert "gap = (net(x) - x[:, :3]) ** 2" in finding.fix
    assert "loss = gap.mean()" in finding.fix


def test_the_slope_is_let_past_in_the_names_of_the_line():
    finding = fix_of("out = net(x)\npred = torch.round(out)\nloss = F.mse_loss(pred, x[:, :3])")
    assert finding.fix == "pred = out + (out.round() - out).detach()  # the slope of out"


def test_a_long_chain_of_names_ends_the_search_and_nothing_fails():
    chain = "\n".join(f"t{i + 1} = t{i} + 0.1 * variation(out)" for i in range(400))
    assert found(f"out = net(x)\nt0 = F.cross_entropy(out, y)\n{chain}\nloss = t400") == []


LOSSES = "crit = {'at': nn.MSELoss(), 'cls': nn.CrossEntropyLoss()}\nteacher = nn.Linear(5, 3).requires_grad_(False)\n"


@pytest.mark.parametrize(
    ("kd", "loss", "severities"),
    [
        ("F.mse_loss(net(x), teacher(x)).detach()", "one + kd", ["hint"]),
        ("F.mse_loss(net(x), teacher(x)).detach() * 5", "one + kd", ["warning"]),
        ("crit['at'](net(x), teacher(x)).detach()", "crit['cls'](net(x), y) + 5 * kd", ["warning"]),
        ("F.mse_loss(net(x), teacher(x))", "one + kd.detach()", []),
        # It is a loss where it waits for its epoch, and a distance that is no loss by its name.
        ("F.mse_loss(net(x), teacher(x))", "one + (kd if len(y) > 20 else F.mse_loss(net(x), y[:, None]).detach())", []),
        ("(net(x) - teacher(x)).square().mean().detach()", "one + kd", []),
        # What is detached learns by a call of its own.
        ("F.mse_loss(judge(net(x).detach()), x[:, :1]); kd.backward()", "one + kd.detach()", []),
    ],
)  # fmt: skip
def test_a_loss_that_is_detached_before_it_is_added(kd, loss, severities):
    body = f"one = F.cross_entropy(net(x), y)\nkd = {kd}\nloss = {loss}"
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    told = findings_in(START + LOSSES, LOOP.format(lines), slug="graph-cut", fails=False)
    assert [one.severity for one in told] == severities


TRAIN = """
def train(nets, crit, rates):
    s, t = nets['s'], nets['t']
    for _ in range(3):
        one = crit['at'](s(x), t(x)).detach() * rates['one']
        two = F.mse_loss(s(x + 1), t(x)).detach() * rates['two']
        loss = one + two + F.cross_entropy(s(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def test_weights_that_the_one_call_of_the_function_gives():
    call = "train({'s': net, 't': teacher}, crit, {'one': %s, 'two': %s})"
    told = findings_in(START + LOSSES + TRAIN, call % (5, 0.5), slug="graph-cut", fails=False)
    assert [(one.line, one.fix.partition("  #")[0]) for one in told] == [
        (17, "one = crit['at'](s(x), t(x)) * rates['one']"),
        (18, "two = F.mse_loss(s(x + 1), t(x)) * rates['two']"),
    ]
    # Weights that learn how large the losses are.
    learned = call % (("nn.Parameter(torch.tensor(1.))",) * 2)
    assert findings_in(START + LOSSES + TRAIN, learned, slug="graph-cut", fails=False) == []


SURROGATE = "out = net(x)\nsur, other = F.cross_entropy(out, y), variation(out)\ntrue = (out.argmax(1) != y).float().mean()\nw = 0.5\n"


@pytest.mark.parametrize(
    "loss",
    [
        "loss = sur - sur.detach() + true",
        "loss = true + sur - sur.data",
        "loss = true - (sur.detach() - sur)",
        "loss = sur + (true - sur).detach()",
        "loss = sur + 1.0 * (true - sur).detach()",
        "loss = 0.3 * (sur - sur.item()) + true",
        "loss = w * sur - w * sur.detach() + true",
        "loss = sur * w - sur.detach() * w + true",
        "loss = sur - sur.detach()\nloss += true",
        "base = sur.detach()\nzero = sur - base\nloss = true + zero",
        "def through(one, two): return one - one.detach() + two\nloss = through(sur, true)",
        "loss = sum([sur, -sur.detach(), true])",
        "loss = torch.stack([sur - sur.detach() + true, other]).sum()",
        "gain = -sur\nloss = -(gain - gain.detach() + (1 - true))",
    ],
)
def test_the_value_of_one_with_the_gradient_of_another(loss):
    assert found(SURROGATE + loss) == []


@pytest.mark.parametrize(
    ("loss", "term"),
    [
        ("loss = sur + true", "true"),
        ("loss = sur - other.detach() + true", "true"),
        ("loss = sur + sur.detach() + true", "true"),
        ("sur = sur + 0.5 * out.std().item()\nloss = sur - sur.detach() + true", "0.5 * out.std().item()"),
    ],
)
def test_a_term_beside_another_value_is_lost(loss, term):
    assert f"`{term}` is a term of `loss`" in " ".join(one.message for one in found(SURROGATE + loss))


def test_a_loss_without_a_name_is_said_in_words():
    body = "out = net(x)\n(F.cross_entropy(out, y) + 0.5 * variation(out).item()).backward()"
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    (one,) = findings_in(START, f"for _ in range(3):\n    opt.zero_grad()\n{lines}\n    opt.step()\n", slug="graph-cut")
    assert "is a term of the loss without history" in one.message
    assert "`the loss`" not in one.message
