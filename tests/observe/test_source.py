"""What the text of a cell says."""

import ast

import pytest

from tests.fakes import a_cell
from torch_inspector.observe import source


def tree(code):
    return ast.parse(code)


def functions(code, offset=0):
    return source.loop_functions(tree(code), code, offset)


KEPT = {
    "append": "for i in range(3):\n    fs.append(lambda: i)",
    "append a tuple": "for i in range(3):\n    fs.append((i, lambda x: x * i))",
    "extend": "for i in range(3):\n    fs.extend([lambda: i, lambda: 2 * i])",
    "assign into": "for i in range(3):\n    fs[i] = lambda: i",
    "assign to an attribute": "for m in models:\n    m.act = lambda x: m.old(x)",
    "comprehension": "fs = [lambda: i for i in range(3)]",
    "dict comprehension": "fs = {i: lambda x: x ** i for i in range(3)}",
    "hook": "for name, m in net.named_modules():\n    m.register_forward_hook(lambda *a: out.update({name: a[2]}))",
    "tensor hook": "for k, p in params:\n    p.register_hook(lambda g: seen.append(k))",
    "def and append": "for i in range(3):\n    def f(x):\n        return x + i\n    fs.append(f)",
    "def and assign": "for i in range(3):\n    def f(x):\n        return x + i\n    fs[i] = f",
    "lambda with a name": "for i in range(3):\n    f = lambda: i\n    fs.append(f)",
    "inner loop": "for a in A:\n    for b in B:\n        fs.append(lambda: b)",
    "outer variable": "for a in A:\n    for b in B:\n        fs.append(lambda: a)",
    "two names": "for k, v in items:\n    fs.append(lambda: (k, v))",
    "in a branch": "for i in x:\n    if i:\n        fs.append(lambda: i)",
    "conditional": "for i in x:\n    fs.append(lambda: i if i else None)",
    "only one of two bound": "for k, v in items:\n    fs.append(lambda k=k: (k, v))",
    "submit": "for i in x:\n    jobs.append(pool.submit(lambda: i))",
}
NOT_KEPT = {
    "default argument": "for i in range(3):\n    fs.append(lambda i=i: i)",
    "keyword-only default": "for i in range(3):\n    fs.append(lambda *, i=i: i)",
    "partial": "for i in range(3):\n    fs.append(partial(f, i))",
    "factory": "for i in range(3):\n    fs.append((lambda i: lambda: i)(i))",
    "called at once": "for i in range(3):\n    xs.append((lambda: i)())",
    "sorted": "for i in range(3):\n    xs.append(sorted(ys, key=lambda y: y[i]))",
    "sort": "for i in range(3):\n    ys.sort(key=lambda y: y[i])",
    "max": "for i in range(3):\n    best = max(ys, key=lambda y: y * i)",
    "map": "for i in range(3):\n    zs.append(list(map(lambda y: y + i, ys)))",
    "apply": "for i in range(3):\n    t.apply_(lambda v: v + i)",
    "no loop variable": "for i in range(3):\n    fs.append(lambda x: x + 1)",
    "own argument": "for i in range(3):\n    fs.append(lambda i: i)",
    "own assignment": "for i in range(3):\n    def f():\n        i = 1\n        return i\n    fs.append(f)",
    "comprehension inside": "for i in range(3):\n    fs.append(lambda xs: [i for i in xs])",
    "outside any loop": "fs.append(lambda: i)",
    "while": "while i:\n    fs.append(lambda: i)",
    "closure step": "for x in xs:\n    def closure():\n        return loss(x)\n    opt.step(closure)",
    "unused def": "for i in x:\n    def f():\n        return i",
    "break": "for i in range(3):\n    fs.append(lambda: i)\n    break",
    "return": "def g():\n    for i in x:\n        fs.append(lambda: i)\n        return fs",
    "hook taken away": "for n, m in ms:\n    h = m.register_forward_hook(lambda *a: o.append(n))\n    m(x)\n    h.remove()",
    "list of this turn": "for i in x:\n    fs = []\n    fs.append(lambda: i)\n    run(fs)",
    "object of this turn": "for i in x:\n    net = make()\n    net.act = lambda x: x * i",
    "generator": "sum(f() for f in (lambda: i for i in range(3)))",
    "in a function of its own": "for i in x:\n    def make(i):\n        fs.append(lambda: i)\n    make(i)",
    "in a class": "for i in x:\n    class A:\n        def f(self):\n            return i",
    "loop variable of another loop": "for i in x:\n    pass\nfor j in y:\n    fs.append(lambda: i)",
    "in the iterable": "for i in filter(lambda i: i, x):\n    fs.append(1)",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_function_that_reads_late(name):
    assert functions(KEPT[name])


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_function_that_is_no_mistake(name):
    assert functions(NOT_KEPT[name]) == ()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "for i in x:\n    fs.append(lambda xs: max(xs, key=lambda i: -i))", id="argument of an inner lambda"
        ),
        pytest.param(
            "for i in x:\n    out.append(pool.submit(lambda: work(i)).result())", id="result in the same turn"
        ),
        pytest.param("for i in x:\n    fs.clear()\n    fs.append(lambda: i)\n    run(fs)", id="cleared each turn"),
        pytest.param("for i in x:\n    fs.append(lambda: i)\n    run(fs)\n    fs.pop()", id="popped each turn"),
    ],
)
@pytest.mark.xfail(reason="source.py loop_functions: said although no function reads late")
def test_a_function_that_is_no_mistake_and_is_called_one(code):
    assert functions(code) == ()


def test_a_late_function_in_full():
    (fact,) = functions("x = 1\nfor name, scale in items:\n    hooks.append(lambda g: g * scale)", offset=2)
    assert fact == (5, ("scale",), "lambda", "append", "hooks.append(lambda g: g * scale)")


def test_one_fact_per_function():
    assert len(functions("for a in A:\n    for b in B:\n        fs.append(lambda: b)")) == 1


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
    assert source.assignment_line(tree(code), "loss", before) == line


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
@pytest.mark.xfail(reason="source.py _assigns: takes loads in targets for stores, and knows no for, with and walrus")
def test_where_a_variable_got_its_value_and_another_line_is_given(code, before, line):
    assert source.assignment_line(tree(code), "loss", before) == line


@pytest.mark.parametrize(
    ("code", "path", "line"),
    [
        ("losses = []\nfor x in y:\n    losses.append(f(x))", "losses", 3),
        ("total = 0\nfor x in y:\n    total += f(x)", "total", 3),
        ("total = 0\nfor x in y:\n    total = total + f(x)", "total", 3),
        ("h = {'loss': []}\nfor x in y:\n    h['loss'].append(f(x))", "h['loss']", 3),
        ('h = {"loss": []}\nfor x in y:\n    h["loss"].append(f(x))', "h['loss']", 3),
        ("d = {}\nfor i, x in y:\n    d[i] = f(x)", "d", 3),
        ("s = set()\nfor x in y:\n    s.add(f(x))", "s", 3),
        ("q = deque()\nfor x in y:\n    q.appendleft(f(x))", "q", 3),
        ("for x in y:\n    self.losses.append(f(x))", "self.losses", 2),
        ("outs = [f(x) for x in y]", "outs", 1),
        ("other.append(1)", "losses", None),
        ("losses.clear()", "losses", None),
        ("for x in y: losses.extend([f(x)])", "losses", 1),
    ],
)
def test_the_line_that_collects(code, path, line):
    assert source.growth_line(tree(code), path) == line


@pytest.mark.parametrize(
    ("code", "line"),
    [
        pytest.param(
            "def fit():\n    for x in y:\n        losses.append(f(x))\nlosses = []\nfit()", 3, id="made below"
        ),
        pytest.param(
            "for x in y:\n    losses.append(f(x))\nkept = losses\nlosses = losses[-5:]", 2, id="cut afterwards"
        ),
    ],
)
@pytest.mark.xfail(
    reason="source.py _grows: a plain assignment to the container counts as growth, and the last line wins"
)
def test_the_line_that_collects_and_an_assignment_is_given(code, line):
    assert source.growth_line(tree(code), "losses") == line


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
        ("net(x)", 1, False),
        ("for _ in range(9):\n    pass\nnet(x)", 3, False),
        ("for x, y in data:\n    out = net(x)", 2, False),
    ],
)
def test_the_same_input_again(code, line, repeats):
    assert source.repeats_input(tree(code), line) is repeats


@pytest.mark.parametrize(
    ("code", "line", "names"),
    [
        ("y = self.w @ x + b", 1, ("self.w", "b", "self", "x", "y")),
        ("y = net(\n    x,\n)", 2, ("net", "x", "y")),
        ("for x in data:\n    y = net(x)", 2, ("net", "x", "y")),
        ("", 1, ()),
    ],
)
def test_names_on_a_line(code, line, names):
    assert source.names_on_line(tree(code), line) == names


def test_names_that_are_subtracted_in_the_function_around():
    code = "def loss(p, y):\n    return (p - y) ** 2\nz = a - b\nf(a[0] - c)"
    assert source.subtracted_names(tree(code), 2) == {"p", "y"}
    assert source.subtracted_names(tree(code), 3) >= {"a", "b", "c"}


def test_calls_by_line():
    calls = source.call_facts(tree("a.b(c())\nf()()\nx[0].g()"), 3)
    assert [(call.name, call.line) for call in calls] == [("a.b", 4), ("c", 4), ("f", 5)]


@pytest.mark.parametrize("code", ["def broken(:", "\0", "%time x", "(" * 300])
def test_text_that_is_no_python_says_nothing(code):
    assert source.parse(code) is None
    assert source.source_trace(a_cell(code)).calls == ()


def test_the_text_of_a_cell_in_full():
    trace = source.source_trace(a_cell("…", code="for i in x:\n    fs.append(lambda: i)", line_offset=2))
    assert trace.loop_functions[0].line == 4
    assert [call.name for call in trace.calls] == ["fs.append"]
