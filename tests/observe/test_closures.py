"""Functions made in loops."""

import ast

import pytest

from torch_inspector.observe.closures import loop_functions


def functions(code, offset=0):
    return loop_functions(ast.parse(code), code, offset)


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
    "scheduler": "for k in ks:\n    o = SGD(ps)\n    scheds.append(lr_scheduler.LambdaLR(o, lambda e: k**e))",
    "layer of a function": "layers = ModuleList([Lambda(lambda v: v[:, :k]) for k in ks])",
    "moved layer": "for k in ks:\n    layers.append(Lambda(lambda v: v * k).to(device))",
    "name made in the body": (
        "for i, m in ms:\n    key = f'{i}'\n    m.register_forward_hook(lambda *a: out.update({key: a}))"
    ),
    "while": "while i < 3:\n    fs.append(lambda v: v * i)\n    i += 1",
    "plus equals": "for k in ks:\n    fs += [lambda v: v * k]",
    "joined": "for k in ks:\n    fs = fs + [lambda v: v * k]",
    "lazy": "for p in ps:\n    xs = filter(lambda x: x % p, xs)",
    "setattr": "for name in names:\n    setattr(m, name, lambda v: print(name))",
    "button": "for k, b in enumerate(bs):\n    b.on_click(lambda _: print(k))",
    "list of a generator": "fs = list((lambda v: v**k) for k in ks)",
    "stars": "net = Sequential(*(Lambda(lambda v: v * k) for k in ks))",
    "decorator": "for k in ks:\n    @register(f'net{k}')\n    def build():\n        return k",
    "tuple with a name in it": "for k in ks:\n    def run():\n        return k\n    fs.append(('a', run))",
    "hook in an inner loop": (
        "for k, b in bs:\n    for m in b:\n        m.register_forward_hook(lambda *a: out.append(k))"
    ),
    "layer by index": "for i in range(3):\n    m = net[i]\n    m.register_forward_hook(lambda *a: out.append(i))",
    "patched method": "for m in net:\n    old = m.forward\n    m.forward = lambda x: old(x) * 2",
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
    "while without a change": "while i:\n    fs.append(lambda: i)",
    "hook in a with": "for k, m in ms:\n    with m.register_forward_hook(lambda *a: out.append(k)):\n        m(x)",
    "overwritten attribute": "for t in ts:\n    sampler.guide = lambda z: z * t\n    x = sampler.step(x)",
    "overwritten element": "for k in ks:\n    fs['end'] = lambda: print(k)\n    fs['end']()",
    "result taken": "for k in ks:\n    job = pool.submit(lambda: k)\n    print(job.result())",
    "scheduler of this turn": (
        "for k in ks:\n    s = LambdaLR(o, lambda e: k**e)\n    s.step()\n    lrs.append(s.get_last_lr())"
    ),
    "layer put back": (
        "for m in net:\n    old = m.forward\n    m.forward = lambda x: old(x)\n    run(m)\n    m.forward = old"
    ),
    "evaluated": "areas = [quad(lambda t: t**k, 0, 1)[0] for k in ks]",
    "measured": "for k in ks:\n    times.append(measure(lambda: net(x[:k])))",
    "step": "for x in xs:\n    def closure():\n        return loss(x)\n    losses.append(opt.step(closure))",
    "break in a branch": (
        "for k, m in ms:\n    if m:\n        m.register_forward_hook(lambda *a: print(k))\n        break"
    ),
    "table": "for c in cs:\n    df[c] = df[c].apply(lambda v: v * scale[c])",
    "called in the turn": (
        "for k in ks:\n    @no_grad()\n    def run(x):\n        return x * k\n    outs.append(run(x))"
    ),
    "waited for": (
        "for k in ks:\n    t = Thread(target=lambda: work(k))\n    t.start()\n    t.join()\n    done.append(t)"
    ),
    "closure step": "for x in xs:\n    def closure():\n        return loss(x)\n    opt.step(closure)",
    "unused def": "for i in x:\n    def f():\n        return i",
    "break": "for i in range(3):\n    fs.append(lambda: i)\n    break",
    "return": "def g():\n    for i in x:\n        fs.append(lambda: i)\n        return fs",
    "hook taken away": (
        "for n, m in ms:\n    h = m.register_forward_hook(lambda *a: o.append(n))\n    m(x)\n    h.remove()"
    ),
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
def test_a_function_that_is_no_mistake_and_is_called_one(code):
    assert functions(code) == ()


def test_a_late_function_in_full():
    (fact,) = functions("x = 1\nfor name, scale in items:\n    hooks.append(lambda g: g * scale)", offset=2)
    assert fact == (5, ("scale",), "lambda", "append", "hooks.append(lambda g: g * scale)", True, fact.bound)
    assert fact.bound == "lambda g, scale=scale: g * scale"


def test_one_fact_per_function():
    assert len(functions("for a in A:\n    for b in B:\n        fs.append(lambda: b)")) == 1


UNSURE = {
    "unknown wrapper": "for k in ks:\n    fs[k] = safe(lambda v: v * k)",
    "object of this turn": "for k in ks:\n    net = make()\n    net.act = lambda v: v * k\n    nets.append(net)",
    "equal value": "for seed in seeds:\n    loss = MSELoss()\n    fs.append(lambda p, q: loss(p, q))",
    "shared object": "for epoch in range(3):\n    net.register_forward_hook(lambda *a: log(epoch))",
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_may_be_no_mistake_is_not_sure(name):
    (fact,) = functions(UNSURE[name])
    assert not fact.sure
