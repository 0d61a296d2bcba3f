"""Lines and names in the text of a cell."""

import ast
from time import thread_time

import pytest

from torch_inspector.observe import lines


def tree(code):
    return ast.parse(code)


@pytest.mark.parametrize(
    ("code", "before", "line"),
    [
        ("loss = 1\nloss.backward()", 2, 1),
        ("loss = 1\nloss = 2\nloss.backward()", 3, 2),
        ("loss.backward()\nloss = 1", 1, None),
        ("loss = 0\nfor x in y:\n    loss += f(x)\nloss.backward()", 4, 3),
        ("a, loss = f()\nloss.backward()", 2, 1),
        ("(a, (loss, b)) = f()\nloss.backward()", 2, 1),
        ("loss: T = f()\nloss.backward()", 2, 1),
        ("loss = 1\ndef step():\n    loss = f()\n    loss.backward()", 4, 3),
        ("def step():\n    loss = f()\nloss = 2\nloss.backward()", 4, 3),
        ("def step():\n    loss = f()\nloss.backward()", 3, None),
        ("if a:\n    loss = 1\nelse:\n    loss = 2\nloss.backward()", 5, 4),
        ("with ctx:\n    loss = (\n        f())\n    loss.backward()", 4, 2),
        ("other = 1\nother.backward()", 2, None),
        ("class A:\n    def fit(self):\n        loss = 1\n        loss.backward()", 4, 3),
    ],
)
def test_where_a_variable_got_its_value(code, before, line):
    assert lines.assignment_line(tree(code), "loss", before) == line


@pytest.mark.parametrize(
    ("code", "before", "line"),
    [
        pytest.param("loss = None\nfor loss in losses:\n    loss.backward()", 3, 2, id="target of a loop"),
        pytest.param("loss = f()\nloss.note = 1\nloss.backward()", 3, 1, id="attribute of it"),
        pytest.param("loss = f()\ncache[loss] = 1\nloss.backward()", 3, 1, id="used as an index"),
        pytest.param("loss = None\nprint(loss := f())\nloss.backward()", 3, 2, id="walrus"),
        pytest.param("loss = None\nwith f() as loss:\n    loss.backward()", 3, 2, id="with"),
    ],
)
def test_where_a_variable_got_its_value_and_another_line_is_given(code, before, line):
    assert lines.assignment_line(tree(code), "loss", before) == line


@pytest.mark.parametrize(
    ("code", "line", "repeats"),
    [
        ("[net(x) for _ in range(9)]", 1, True),
        ("for _ in range(9):\n    ys.append(net(x))", 2, True),
        ("for x in data:\n    ys.append(net(x))", 2, False),
        ("[net(x) for x in data]", 1, False),
        ("for i in range(9):\n    ys.append(net(data[i]))", 2, False),
        ("for i in range(9):\n    x = draw()\n    ys.append(net(x))", 3, False),
        ("for i in range(9):\n    ys.append(net(torch.randn(3)))", 2, False),
        ("for _ in range(9):\n    fit_one(net, 3)\n    ys.append(score(net, x))", 3, False),
        ("for _ in range(9):\n    once(net, opt)\n    ys.append(score(net, x))", 3, False),
        ("for _ in range(9):\n    net.train()\n    ys.append(score(net, x))\n    bar.update(1)", 3, True),
        ("for _ in range(9):\n    train_mode(net)\n    ys.append(score(net, x))", 3, True),
        ("[[net(x) for x in data] for _ in range(9)]", 1, True),
        ("[[net(x) for x in data] for net in nets]", 1, False),
        ("[[net(x) for x in part] for part in data]", 1, False),
        ("for _ in range(9):\n    runs.append(torch.cat([net(xb) for xb in x.split(4)]))", 2, True),
        ("for _ in range(9):\n    parts = [net(xb) for xb in x.split(4)]\n    runs.append(torch.cat(parts))", 2, True),
        ("for _ in range(9):\n    parts = []\n    for xb in x.split(4):\n        parts.append(net(xb))", 4, True),
        ("for _ in range(9):\n    for xb, _ in pairs:\n        xb = xb.to(d)\n        out = net(xb)", 4, True),
        ("for _ in range(9):\n    for z in torch.randn(9, 4).split(3):\n        out = net(z)", 3, False),
        ("for _ in range(9):\n    for b in data:\n        xb, yb = to_device(b)\n        net(xb)", 4, True),
        (
            "for _ in range(9):\n    for i in starts:\n        xb = prep(x[i], device('cpu'))\n        net(xb)",
            4,
            True,
        ),
        ("for _ in range(9):\n    for i in range(3):\n        xb = get_batch(data)\n        net(xb)", 4, False),
        (
            "for _ in range(9):\n    for _ in part:\n        raw = next(it)\n        xb = prep(raw)\n        net(xb)",
            5,
            False,
        ),
        ("for _ in range(9):\n    for b in data:\n        net(prep(b))", 3, True),
        ("[net(x.to('cpu')) for _ in range(9)]", 1, True),
        ("for _ in range(9):\n    xb = get_batch(data)\n    net(xb)", 3, False),
        ("for _ in range(9):\n    xb = x.to('cpu')\n    net(xb)", 3, True),
        ("for _ in range(9):\n    xb = prep(get_batch('val'))\n    net(xb)", 3, False),
        ("for _ in range(9):\n    x = net(x)", 2, False),
        ("for _ in range(9):\n    y = net(x)\n    x = y + 1", 2, False),
        (
            "for _ in range(9):\n    noise = draw()\n    for xb in xs:\n        z = xb + noise\n        out = net(z)",
            5,
            False,
        ),
        ("for part in parts:\n    for xb in part:\n        out = net(xb)", 3, False),
        ("for net in nets:\n    for xb in part:\n        out = net(xb)", 3, False),
        ("for _ in range(9):\n    train_one(net)\n    for xb in part:\n        out = net(xb)", 4, False),
        ("for _ in range(9):\n    print(optimizer)\n    ys.append(net(x))", 3, True),
        ("while True:\n    for xb in part:\n        out = net(xb)", 3, True),
        ("net(x)", 1, False),
        ("for _ in range(9):\n    pass\nnet(x)", 3, False),
        ("for x, y in data:\n    out = net(x)", 2, False),
    ],
)
def test_the_same_input_again(code, line, repeats):
    assert lines.repeats_input(tree(code), lines.Spot(line)) is repeats


ASKED = "for _ in range(9):\n    once(net, {})\n    ys.append(score(net, x))"


@pytest.mark.parametrize(
    ("given", "optimizers", "repeats"),
    [("opt", {"opt"}, False), ("opt", set(), True), ("self.opt", {"opt"}, False), ("opt_level", {"opt"}, True)],
)
def test_only_what_is_an_optimizer_trains(given, optimizers, repeats):
    assert lines.repeats_input(tree(ASKED.format(given)), lines.Spot(3), frozenset(optimizers)) is repeats


def test_names_of_a_long_loop_are_followed_in_no_time():
    line = "    a, b, c, d = a + b + c + d, b * a + c, c - d + b, d + a\n    e = a + b + c + d + e\n"
    code = tree("for k in range(3):\n    a = b = c = d = e = k\n" + 600 * line + "    net(e, v)")
    began = thread_time()
    assert not lines.repeats_input(code, lines.Spot(1203))
    assert thread_time() - began < 1
