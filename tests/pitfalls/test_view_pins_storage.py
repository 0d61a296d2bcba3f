"""Views that alone keep a storage, and views that do not."""

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "view-pins-storage"


def found(*cells):
    return findings_in(*cells, slug=SLUG)


@pytest.mark.parametrize(
    ("code", "line", "subject"),
    [
        ("x = torch.randn(1000, 1000)[0]", 1, "x"),
        ("big = torch.randn(1000, 1000)\nx = big[:3]\ndel big", 2, "x"),
        ("d = {}\nfor i in range(3):\n    d[i] = torch.randn(600, 600)[0]", 3, "d"),
        ("rows = [torch.randn(600, 600)[0] for _ in range(3)]", 1, "rows"),
        ("class Box: pass\nbox = Box()\nbox.first = torch.randn(1000, 1000)[0]", 3, "box.first"),
        ("x = torch.randn(1000, 1000).detach()[0].view(10, 100)", 1, "x"),
        ("x = torch.randn(1000, 1000)[0].detach()", 1, "x"),
        ("net = torch.nn.LSTM(8, 64, batch_first=True)\nx = net(torch.randn(8, 1000, 8))[0][:, -1].detach()", 2, "x"),
        ("d = {}\nfor i in range(3):\n    d[i] = torch.randn(600, 600)[0].data", 3, "d"),
        ("with torch.inference_mode():\n    x = torch.randn(1000, 1000)[0]", 2, "x"),
        ("big = torch.randn(1000, 1000)\nx, y = big[0].detach(), big[1]\ndel big", 2, "x"),
    ],
)
def test_views_that_keep_a_storage(code, line, subject):
    (finding,) = found("import torch", code)
    assert (finding.line, finding.subject) == (line, subject)


@pytest.mark.parametrize(
    "code",
    [
        "big = torch.randn(1000, 1000)\nx = big[0]",
        "keep = {'b': torch.randn(1000, 1000)}\nx = keep['b'][0]",
        "x = torch.randn(1000, 1000)[0].clone()",
        "x = torch.randn(1000, 1000)[0].detach().clone()",
        "big = torch.randn(1000, 1000)\nx = big[0].detach()",
        "keep = {'b': torch.randn(1000, 1000)}\nx = keep['b'][0].detach()",
        "def make():\n    big = torch.randn(1000, 1000)\n    return big[0].detach(), lambda: big\nx, later = make()",
        "net = torch.nn.Linear(1000, 1000)\nx = net.weight[0].detach()",
        "w = torch.ones(1000, 1000, requires_grad=True)\nout = w.tanh()\nx, loss = out[0].detach(), out.sum()\ndel out",
        "x = torch.randn(1000, 1000)[[0]]",
        "x = torch.randn(1000, 1000)[:200]",
        "parts = torch.randn(1000, 1000).chunk(20)",
        "import numpy\narray = numpy.ones((1000, 1000))\nx = torch.from_numpy(array)[0]",
        "array = torch.randn(1000, 1000).numpy()\nx = torch.from_numpy(array)[0]",
        "data = torch.utils.data.TensorDataset(torch.randn(1000, 1000))\nx = data.tensors[0][0]",
        "net = torch.nn.Linear(1000, 1000)\nx = net.weight.data[0]",
        "net = torch.nn.Linear(1000, 1000)\nx = net(torch.randn(1000, 1000))[0]",
        "def make():\n    big = torch.randn(1000, 1000)\n    return big[0], lambda: big\nx, later = make()",
        "x = torch.randn(300)[0]",
        "for x in torch.randn(100, 10_000):\n    y = x.sum()",
        "wide = torch.randn(1, 1000).expand(1000, 1000)",
    ],
)
def test_views_of_what_is_there_anyway(code):
    assert found("import torch", code) == []


def test_it_is_said_once():
    assert len(found("import torch", "x = torch.randn(1000, 1000)[0]", "y = 1")) == 1


def test_small_storages_where_small_ones_are_asked_for():
    cells = ("import torch", "x = torch.randn(16, 200, 64)[:, 0]")
    (finding,) = findings_in(*cells, slug=SLUG, min_bytes=0)
    assert (finding.subject, finding.severity) == ("x", "hint")
    assert not found(*cells)


@pytest.mark.parametrize(
    ("kept", "fix"),
    [
        ("x = {i: torch.randn(600, 600)[0] for i in range(3)}", "{key: view.clone() for key, view in x.items()}"),
        ("x = [torch.randn(600, 600)[0] for _ in range(3)]", "[view.clone() for view in x]"),
    ],
)
def test_the_fix_keeps_the_kind_of_container(kept, fix):
    (finding,) = found("import torch", kept)
    assert finding.fix.startswith(f"x = {fix}")


@pytest.mark.parametrize("path", ["cache['first']", "cache['first']['row']"])
def test_what_was_there_besides_is_deleted_in_a_later_cell(path):
    put = "cache['first'] = big[0]" if path.count("[") == 1 else "cache['first'] = {'row': big[0], 'label': 3}"
    with a_notebook() as notebook:
        for cell in ("import torch\ncache = {}", f"big = torch.randn(1000, 1000)\n{put}", "del big"):
            run = notebook.run(cell)
        (finding,) = (one for one in run.findings if one.slug == SLUG)
    assert (finding.subject, finding.line, finding.cell) == (path, 2, 2)


TRACK = """
import torch
class Track:
    def __init__(self, emb): self.emb = emb
def view(): return torch.randn(600, 600)[0]
"""


@pytest.mark.parametrize(
    ("kept", "subject", "said"),
    [
        ("x = {i: Track(view()) for i in range(5)}", "x", "5 views in `x` (`.emb` of its elements) show"),
        ("x = {str(i): Track(view()) for i in range(5)}", "x", "5 views in `x` (`.emb` of its elements) show"),
        ("x = [Track(view()) for i in range(5)]", "x", "5 views in `x` (`.emb` of its elements) show"),
        ("x = [{'emb': view(), 'n': i} for i in range(5)]", "x", "5 views in `x` (`['emb']` of its elements) show"),
        ("x = [view() for _ in range(5)]; x[2] = 3", "x", "4 views in `x` show"),
        ("x = {'a': view(), 'b': view(), 'c': view(), 'd': 3}", "x", "3 views in `x` show"),
        ("x = [view(), view(), 3]", "x", "`x[0]` and `x[1]` are views that show"),
        ("x = [view() for _ in range(4)]\nfull = torch.randn(600, 600); x.append(full[0])", "x", "4 of the 5 tensors"),
        ("x, box = [Track(None)], Track(Track(view()))", "box.emb.emb", "`box.emb.emb` is a view that shows"),
    ],
)
def test_views_that_one_line_keeps_are_told_together_and_copied(kept, subject, said):
    with a_notebook() as notebook:
        notebook.run(TRACK)
        (finding,) = (one for one in notebook.run(kept).findings if one.slug == SLUG)
        assert finding.subject == subject
        assert finding.message.startswith(said)
        notebook.run(finding.fix)
        run = notebook.run("y = 1")
        assert notebook.errors == [None] * 4
        assert not run or not run.after.pins
