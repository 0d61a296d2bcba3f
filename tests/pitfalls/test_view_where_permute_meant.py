"""Views that re-cut what a model computes, where no loss is made of it."""

import pytest

from tests.cells import a_notebook, findings_in

HEADS = """\
import torch
from torch import nn
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.heads = nn.Linear(32, 32), 4
    def forward(self, x):
        batch, time, width = x.shape
        q = self.query(x){cut}
        return (q @ q.transpose(-1, -2)).softmax(-1)
heads = Heads()"""
WRONG = ".view(batch, self.heads, time, width // self.heads)"
RIGHT = ".view(batch, time, self.heads, width // self.heads).transpose(1, 2)"


def found(cut, code):
    with a_notebook() as notebook:
        notebook.run(HEADS.format(cut=cut))
        return notebook.run(code).findings


@pytest.mark.parametrize("code", ["out = heads(torch.randn(2, 10, 32))", "seen = [heads(torch.randn(2, 10, 32))]"])
def test_a_kept_result_shows_it_at_the_line_of_the_class(code):
    (finding,) = [one for one in found(WRONG, code) if one.slug == "view-where-permute-meant"]
    assert (finding.cell, finding.line) == (1, 9)
    assert finding.fix == f"q = self.query(x){RIGHT}"


def test_sizes_that_the_text_does_not_tell_show_in_the_graph_at_the_line_of_the_view():
    (finding,) = found(".view(*[batch, self.heads, time, width // self.heads])", "out = heads(torch.randn(2, 10, 32))")
    assert (finding.slug, finding.subject, finding.cell, finding.line) == ("view-where-permute-meant", "out", 1, 9)


def test_a_view_of_an_earlier_cell_that_does_not_run_is_not_blamed():
    with a_notebook() as notebook:
        notebook.run(HEADS.format(cut=".unflatten(2, (4, 8)).flatten(1).unflatten(1, (self.heads, time, 8))"))
        notebook.run("flat = torch.rand(2, 10, 32).view(20, 32)")
        found = notebook.run("out = heads(torch.randn(2, 10, 32))").findings
    assert all(one.cell == 3 for one in found)


def test_the_right_order_is_silent():
    assert found(RIGHT, "out = heads(torch.randn(2, 10, 32))") == ()


IMAGES = """\
import numpy as np
import torch
from torch import nn
conv = nn.Conv2d(3, 2, 3)
data = torch.rand(4, 8, 6, 3)
array = np.random.rand(4, 8, 6, 3).astype("float32")
loader = torch.utils.data.DataLoader(torch.rand(8, 8, 6, 3), batch_size=4)
def predict(images):
    images = torch.as_tensor(images).float().view(-1, 3, 8, 6)
    return conv(images)"""


def of_images(code):
    with a_notebook() as notebook:
        notebook.run(IMAGES)
        return [one for one in notebook.run(code).findings if one.slug == "view-where-permute-meant"]


@pytest.mark.parametrize(
    ("code", "subject", "line", "fix"),
    [
        ("made = torch.rand(4, 8, 6, 3)\nmade = made.view(-1, 3, 8, 6)", "made", 2, "made.permute(0, 3, 1, 2)"),
        ("for x in loader:\n    x = x.view(x.size(0), 3, 8, 6)\n    conv(x)", "x", 2, "x.permute(0, 3, 1, 2)"),
        ("other = array.reshape(-1, 3, 8, 6)", "other", 1, "array.transpose(0, 3, 1, 2)"),
        ("array = array.reshape(-1, 3, 8, 6)", "array", 1, "array.transpose(0, 3, 1, 2)"),
        ("out = predict(array)", "images", 9, "torch.as_tensor(images).float().permute(0, 3, 1, 2)"),
        (
            "out = [predict(x) for x in (data, data)]",
            "images",
            9,
            "torch.as_tensor(images).float().permute(0, 3, 1, 2)",
        ),
        ("out = [conv(data[i : i + 2].view(-1, 3, 8, 6)) for i in (0, 2)]", "conv", 1, "# .permute(0, 3, 1, 2)"),
    ],
)
def test_a_view_under_its_own_name_in_a_function_or_of_an_array(code, subject, line, fix):
    (finding,) = of_images(code)
    assert (finding.subject, finding.line) == (subject, line)
    assert fix in finding.fix


@pytest.mark.parametrize(
    "code",
    [
        "made = torch.rand(4, 8, 6, 3)\nmade = made.permute(0, 3, 1, 2).contiguous()",
        "made = torch.rand(4, 144)\nmade = made.view(-1, 3, 8, 6)",
        "made = torch.rand(4, 3, 8, 6)\nmade = made.flatten(2).view(-1, 3, 6, 8)",
        "for x in loader:\n    x = x.movedim(-1, 1).reshape(x.size(0), 3, 8, 6)\n    conv(x)",
        "array = array.transpose(0, 3, 1, 2).reshape(-1, 3, 8, 6)",
        "out = conv(torch.rand(8, 3, 8, 6)[::2].view(-1, 3, 8, 6))",
    ],
)
def test_axes_that_were_moved_or_sizes_that_were_never_its_own(code):
    assert of_images(code) == []


PHOTO = """\
import numpy as np
photo = np.random.default_rng(0).integers(0, 256, size=(20, 30, 3), dtype=np.uint8)
def to_chw(img):
    h, w, c = img.shape
    return {}
seen = to_chw(photo{})"""


@pytest.mark.parametrize(
    ("made", "fix"),
    [
        ("torch.from_numpy(img).float().div(255).reshape(c, h, w)", "float().div(255).permute(2, 0, 1)"),
        ("(torch.as_tensor(img) / 255).view(c, h, w)", "(torch.as_tensor(img) / 255).permute(2, 0, 1)"),
        ("img.astype('float32').reshape(c, h, w)", "img.astype('float32').transpose(2, 0, 1)"),
    ],
)
def test_an_image_that_becomes_a_tensor_on_the_way(made, fix):
    (finding,) = of_images(PHOTO.format(made, ""))
    assert (finding.line, finding.severity) == (5, "warning")
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("made", "part"),
    [
        ("torch.from_numpy(img).float().div(255).permute(2, 0, 1)", ""),
        ("torch.from_numpy(img).float().div(255).reshape(h, w, c)", ""),
        ("torch.from_numpy(img.transpose(2, 0, 1).copy()).float().reshape(c, h, w)", ""),
        ("torch.from_numpy(img).float().div(255).reshape(c, h, w)", "[..., :1]"),
    ],
)
def test_an_image_whose_numbers_stay_where_they_are(made, part):
    assert of_images(PHOTO.format(made, part)) == []


SPLIT = """\
import torch
from torch import nn
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.dk, self.parts = 4, 6, nn.ModuleDict({{n: nn.Linear(24, 24) for n in "qkv"}})
    def split(self, x):
        batch, steps, _ = x.shape
        return {}
    def forward(self, x):
        q, k, v = (self.split(self.parts[n](x)) for n in "qkv")
        return ((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
heads = Heads()"""
RUNS = "out = heads(torch.randn(2, 10, 24))\nloss = out.pow(2).mean()\nloss.backward()"


@pytest.mark.parametrize("cut", ["x.view(batch, self.h, steps, self.dk)", "x.reshape(batch, self.h, steps, -1)"])
def test_a_view_in_a_method_is_named_with_its_line_and_its_own_sizes(cut):
    (finding,) = findings_in(SPLIT.format(cut), RUNS, slug="view-where-permute-meant")
    assert (finding.cell, finding.line, finding.subject) == (1, 9, "x")
    assert f"`{cut}` takes the output of Addmm from (2, 10, 24) to (2, 4, 10, 6)" in finding.message
    mended = finding.fix.removeprefix("return ")
    assert mended.endswith(".transpose(1, 2)")
    assert not findings_in(SPLIT.format(mended), RUNS)


def test_the_states_of_a_layer_in_a_function():
    made = """\
import torch
from torch import nn
lstm, fc = nn.LSTM(8, 10), nn.Linear(10, 4)
def f(x):
    steps, rows, _ = x.shape
    out, _h = lstm(x)
    out = out.view(rows, steps, -1)
    return fc(out)"""
    (finding,) = findings_in(made, "s = f(torch.randn(7, 5, 8))", slug="view-where-permute-meant")
    assert (finding.cell, finding.line, finding.subject) == (1, 7, "out")
    assert finding.fix == "out = out.transpose(0, 1)"


def test_of_two_views_that_may_be_meant_none_is_named():
    two = "x.view(batch, self.h, steps, self.dk) if batch else x.reshape(batch, self.h, steps, self.dk)"
    (finding,) = findings_in(SPLIT.format(two), RUNS, slug="view-where-permute-meant")
    assert (finding.cell, finding.fix[0]) == (2, "#")


TAGGER = """\
import torch
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(8, 10), nn.Linear(10, 4)
    def forward(self, words):
        times, batch, _ = words.shape
        made, _ = self.rnn(words)
        return self.out({view})
tagger, words, tags = Tagger(), torch.randn(7, 5, 8), torch.zeros(35).long()"""


def of_tagger(view, scores):
    loss = f"loss = nn.functional.cross_entropy({scores}, tags)\nloss.backward()"
    with a_notebook() as notebook:
        notebook.run(TAGGER.format(view=view))
        return [one for one in notebook.run(loss).findings if one.slug == "view-where-permute-meant"]


@pytest.mark.parametrize("scores", ["tagger(words).reshape(-1, 4)", "tagger(words).flatten(0, 1)"])
@pytest.mark.parametrize("view", ["made.view(batch, times, -1)", "torch.reshape(made, (batch, times, 10))"])
def test_scores_that_are_cut_into_rows_after_it(view, scores):
    assert of_tagger(view, scores)


@pytest.mark.parametrize(
    "view",
    ["made.transpose(0, 1)", "made.reshape(-1, times, 10)", "made.view(*[batch, times, 10])", "made.view(35, 10)"],
)
def test_sizes_that_are_worked_out_may_come_to_the_same_by_chance(view):
    assert of_tagger(view, "tagger(words).reshape(-1, 4)") == []


@pytest.mark.parametrize(("size", "severities"), [("batch * (time // 8)", []), ("len(other)", ["hint"])])
@pytest.mark.parametrize("kept", ["h = cut(x)", "loss = cut(x).pow(2).mean()\nloss.backward()"])
def test_a_size_that_is_worked_out_a_line_earlier(size, severities, kept):
    setup = (
        "import torch\nbatch, time, other = 8, 16, range(16)\nlin, x = torch.nn.Linear(4, 8), torch.randn(8, 16, 4)\n"
        f"def cut(x):\n    n = {size}\n    return lin(x).view(n, 8, 8)"
    )
    found = findings_in(setup, kept, slug="view-where-permute-meant", fails=False)
    assert [one.severity for one in found] == severities


SIZES = """\
class Sizes:
    def __init__(self):
        self.n = batch * (time // 8)
    def cut(self, x):
        return lin(x).view(self.n, 8, 8)"""


@pytest.mark.parametrize(
    ("before", "body", "call"),
    [
        ("", "n = batch\n    n *= time // 8\n    return lin(x).view(n, 8, 8)", "cut(x)"),
        ("", "n: int = batch * (time // 8)\n    return lin(x).view(n, 8, 8)", "cut(x)"),
        ("", "n, m = batch * (time // 8), 8\n    return lin(x).view(n, m, 8)", "cut(x)"),
        ("", "n = int(batch * time / 8)\n    return lin(x).view(n, 8, 8)", "cut(x)"),
        ("N = batch * (time // 8)", "return lin(x).view(N, 8, 8)", "cut(x)"),
        ("", "return lin(x).view(n, 8, 8)", "cut(x, batch * time // 8)"),
        ("", "return lin(x).view(n, 8, 8)", "cut(x, n=batch * (time // 8))"),
        (
            SIZES,
            "return x",
            "Sizes().cut(x)",
        ),
    ],
)
def test_a_size_that_is_worked_out_elsewhere(before, body, call):
    setup = (
        "import torch\nbatch, time = 8, 16\nlin, x = torch.nn.Linear(4, 8), torch.randn(8, 16, 4)\n"
        f"{before}\ndef cut(x, n=16):\n    {body}"
    )
    assert not findings_in(setup, f"h = {call}", slug="view-where-permute-meant", fails=False)


TURNED = """\
import torch
def turn(x):
    {turn}
    return x
def attend(x):
    b, t, d = x.shape
    y = {made}
    return y.reshape(b, d, t).softmax(-1)
"""
CALL = "r = attend(torch.randn(2, 5, 6))"


def turned(made, turn="pass", cell=CALL):
    cells = TURNED.format(made=made, turn=turn), cell
    return [one.slug for one in findings_in(*cells, slug="view-where-permute-meant", fails=False)]


@pytest.mark.parametrize(
    ("made", "turn"),
    [
        ("turn(x.clone())", "x.transpose_(1, 2)"),
        ("x.clone(); turn(y)", "x.transpose_(1, 2)"),
        ("x.clone(); y.transpose_(1, 2)", "pass"),
        ("x.clone(); z = y; z.swapaxes_(1, 2)", "pass"),
        ("x.clone(); y.data = x.transpose(1, 2)", "pass"),
    ],
)
def test_a_tensor_that_is_turned_in_place_has_other_sizes(made, turn):
    assert turned(made, turn) == []
    assert turned("turn(x.clone())") == ["view-where-permute-meant"]


def test_a_function_that_is_defined_anew_was_another():
    anew = "\ndef turn(x):\n    return x"
    assert turned("turn(x)", "return x.transpose(1, 2)", CALL + anew) == []


RECURRENT = """\
import torch
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.rnn = nn.Embedding(9, 6), nn.{layer}
    def forward(self, ids):
        {names} = ids.shape
        out, _ = self.rnn(self.table(ids))
        return {cut}
tagger = Tagger()"""


def of_steps(layer, names, cut):
    with a_notebook() as notebook:
        notebook.run(RECURRENT.format(layer=layer, names=names, cut=cut))
        return notebook.run("with torch.no_grad():\n    y = tagger(torch.randint(0, 9, (7, 4)))").findings


@pytest.mark.parametrize(("layer", "width"), [("LSTM(6, 10)", 10), ("GRU(6, 5, bidirectional=True)", 10)])
def test_steps_of_a_recurrent_layer_are_told_without_a_graph(layer, width):
    (finding,) = of_steps(layer, "time, batch", f"out.contiguous().view(batch, time, {width})")
    assert (finding.slug, finding.cell, finding.line) == ("view-where-permute-meant", 1, 10)


@pytest.mark.parametrize(
    ("layer", "names", "cut"),
    [
        ("LSTM(6, 10, batch_first=True)", "batch, time", "out.contiguous().view(batch, time, 10)"),
        ("LSTM(6, 10)", "time, batch", "out.transpose(0, 1).reshape(batch, time, 10)"),
        ("GRU(6, 5, bidirectional=True)", "time, batch", "out.view(time, batch, 2, 5)[:, :, 0]"),
        ("RNN(6, 10)", "time, batch", "out.view(time * batch, 10)"),
    ],
)
def test_steps_that_keep_their_order(layer, names, cut):
    assert not of_steps(layer, names, cut)


ENTRIES = """\
import torch
def patches(batch):
    batch['x'] = batch['x'].view(4, 3, 16)
    {}
    return batch
def one(x): return {{'x': x}}
def turn(some, new): some.update(new)
batch = {{'x': torch.randn(4, 3, 4, 4)}}
{}"""


@pytest.mark.parametrize(
    ("line", "below"),
    [
        ("batch['x'] = batch['x'].transpose(1, 2)", "patches(batch)"),
        ("batch['x'] = batch['x'].transpose(1, 2)", "batch = patches(batch)"),
        ("batch['x'].transpose_(1, 2)", "patches(batch)"),
        ("", "patches(batch)\nbatch['x'] = batch['x'].transpose(1, 2)"),
        ("batch.update(x=batch['x'].transpose(1, 2))", "patches(batch)"),
        ("batch.update({'x': batch['x'].transpose(1, 2)})", "same = batch\npatches(same)"),
        ("", "same = batch\npatches(batch)\nsame.update(one(batch['x'].transpose(1, 2)))"),
        ("", "patches(batch)\nturn(batch, {'x': batch['x'].transpose(1, 2)})"),
    ],
)
def test_an_entry_that_is_stored_later_had_other_sizes(line, below):
    with a_notebook() as notebook:
        assert not notebook.run(ENTRIES.format(line, below)).findings


@pytest.mark.parametrize(
    "below",
    [
        "",
        "batch['y'] = 1",
        "seen = set()\nseen.update(rows.shape)",
        "more = {}\nmore.update({'x': rows})",
        "batch.update(y=1)",
        "scaler = torch.amp.GradScaler('cpu', enabled=False)\nscaler.update()",
    ],
)
def test_an_entry_that_stays(below):
    code = "import torch\nbatch = {'x': torch.randn(8, 5, 3)}\nrows = batch['x'].reshape(8, 3, 5)\n" + below
    with a_notebook() as notebook:
        (finding,) = notebook.run(code).findings
    assert finding.slug == "view-where-permute-meant"
