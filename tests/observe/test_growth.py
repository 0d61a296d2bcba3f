"""The line that makes a collection or a total grow, and how it would read without history."""

import ast

import pytest

from torch_inspector.observe.growth import growth, numbers_in
from torch_inspector.observe.remedy import past_numbers, remedy


def found(code, path, **options):
    tree = ast.parse(code)
    return growth(tree, path, numbers=numbers_in([tree]), **options)


@pytest.mark.parametrize(
    ("code", "path", "line", "kind"),
    [
        ("losses = []\nfor x in y:\n    losses.append(f(x))", "losses", 3, "append"),
        ("total = 0\nfor x in y:\n    total += f(x)", "total", 3, "sum"),
        ("total = 0\nfor x in y:\n    total = total + f(x)", "total", 3, "sum"),
        ("total = 0\nfor x in y:\n    total = f(x) + total", "total", 3, "sum"),
        ("s = 0\nfor x in y:\n    s = 0.9 * s + 0.1 * f(x)", "s", 3, "sum"),
        ("for x in y:\n    sums['ce'] += f(x)", "sums", 2, "sum"),
        ("h = x\nfor b in blocks:\n    h = b(h)", "h", 3, "carried"),
        ("loss = a + b\nloss = loss + c", "loss", 2, "assigned"),
        ("h = {'loss': []}\nfor x in y:\n    h['loss'].append(f(x))", "h['loss']", 3, "append"),
        ('h = {"loss": []}\nfor x in y:\n    h["loss"].append(f(x))', "h['loss']", 3, "append"),
        ("for n, x in y:\n    h[n].append(f(x))", "h['loss']", 2, "append"),
        ("for x in y:\n    h['a'].append(f(x))\n    h['b'].append(g(x))", "h['a'][3]", 2, "append"),
        ("for x in y:\n    self.h['a'].append(f(x))\n    self.h['b'].append(g(x))", "t.h['a']", 2, "append"),
        ("for x in y:\n    h['a'] += f(x)\n    h['n'] += 1", "h", 2, "sum"),
        ("for x in y:\n    losses.append(f(x))\n    losses.append(f(x).item())", "losses", 2, "append"),
        ("d = {}\nfor i, x in y:\n    d[i] = f(x)", "d", 3, "item"),
        ("for x in y:\n    d['a'] = f(x)", "d", 2, "named"),
        ("s = set()\nfor x in y:\n    s.add(f(x))", "s", 3, "append"),
        ("q = deque()\nfor x in y:\n    q.appendleft(f(x))", "q", 3, "append"),
        ("for x in y:\n    self.losses.append(f(x))", "self.losses", 2, "append"),
        ("for x in y:\n    self.losses.append(f(x))", "trainer.losses", 2, "append"),
        ("def hook(m, i, o):\n    acts.setdefault(n, []).append(o)", "acts['fc1']", 2, "hook"),
        ("outs = [f(x) for x in y]", "outs", 1, "comprehension"),
        ("outs = tuple(f(x) for x in y)", "outs", 1, "comprehension"),
        ("outs = torch.cat([f(x) for x in y])", "outs", 1, "joined"),
        ("outs = {'a': f(x), 'b': g(x)}", "outs", 1, "display"),
        ("curve = train(2)", "curve", 1, "assigned"),
        ("net, curve = train(2)", "curve", 1, "assigned"),
        ("for x in y: losses.extend([f(x)])", "losses", 1, "append"),
        ("def fit():\n    for x in y:\n        losses.append(f(x))\nlosses = []\nfit()", "losses", 3, "append"),
        ("for x in y:\n    losses.append(f(x))\nkept = losses\nlosses = losses[-5:]", "losses", 2, "append"),
    ],
)
def test_the_line_that_collects(code, path, line, kind):
    one = found(code, path)
    assert (one.line, one.kind) == (line, kind)


@pytest.mark.parametrize(("code", "path"), [("other.append(1)", "losses"), ("losses.clear()", "losses"), ("", "a b")])
def test_no_line(code, path):
    assert found(code, path) is None


def test_of_an_earlier_cell_only_functions_can_have_run():
    code = "losses.append(a)\ndef fit():\n    losses.append(b)\nlosses.append(c)"
    assert found(code, "losses", functions_only=True).line == 3


@pytest.mark.parametrize(
    ("code", "path", "text"),
    [
        ("losses.append(loss)", "losses", "losses.append(loss.item())"),
        ("losses.append(a + b)", "losses", "losses.append((a + b).item())"),
        ("log.append({'loss': loss})", "log", ""),
        ("log.append((i, loss))", "log", ""),
        ("for x in y:\n    t += loss * len(x) / n", "t", "t += (loss * len(x) / n).item()"),
        ("for x in y:\n    t = loss + t", "t", "t = loss.item() + t"),
        ("for x in y:\n    t = t + loss", "t", "t = t + loss.item()"),
        ("eps = 1e-3\nfor x in y:\n    t = t + loss + eps", "t", "t = t + (loss + eps).item()"),
        ("for x in y:\n    t = loss + eps + t", "t", "t = (loss + eps).item() + t"),
        ("for x in y:\n    t = 0.1 + t + loss", "t", "t = t + (0.1 + loss).item()"),
        ("eps = 1e-3\nfor x in y:\n    t = t + loss\n    t = t + eps\n    t += eps", "t", "t = t + loss.item()"),
        ("def add(self, v, n):\n    self.sum += v * n", "meter.sum", ""),
        ("for x in y:\n    h = f(x, h)", "h", "h = h.detach()"),
        ("for x in y:\n    out, h = f(x, h)", "h", ""),
        ("for i, x in y:\n    d[i] = f(x)", "d", "d[i] = f(x).item()"),
        ("outs = [f(x) for x in y]", "outs", "outs = [f(x).item() for x in y]"),
        ("curve = train(2)", "curve", ""),
    ],
)
def test_the_line_without_history(code, path, text):
    assert remedy(found(code, path), "item") == text


LOG = "class Log:\n    def log(self, key, value):\n        self.rows[key].append(value)\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (f"{LOG}log.log('a', loss)", "self.rows[key].append(value.item())"),
        (
            f"{LOG}log.log('a', loss)\nlog.log('b', 3)",
            "self.rows[key].append(float(value))",
        ),
        (
            "for k, v in row.items():\n    log.rows[k].append(v)",
            "log.rows[k].append(float(v))",
        ),
        (
            "for k, v in [('loss', loss), ('epoch', i)]:\n    log.rows[k].append(v)",
            "log.rows[k].append(float(v))",
        ),
        ("for k, v in sorted(kw.items()):\n    log.rows[k].append(v)", "log.rows[k].append(float(v))"),
        ("for k, v in zip(names, row):\n    log.rows[k].append(v)", "log.rows[k].append(float(v))"),
        ("for k in row:\n    log.rows[k].append(row[k])", "log.rows[k].append(float(row[k]))"),
        (
            f"{LOG.replace('self, ', 'self, *, ')}log.log(key='a', value=loss)\nlog.log(key='b', value=3)",
            "self.rows[key].append(float(value))",
        ),
        ("for v in losses:\n    log.rows['a'].append(v)", "log.rows['a'].append(v.item())"),
    ],
)
def test_the_line_leaves_numbers_as_they_are(code, text):
    tree = ast.parse(code)
    one = growth(tree, "log.rows['a']")
    assert one is not None
    assert past_numbers(one, remedy(one, "item"), [tree]) == text
