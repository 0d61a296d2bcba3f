"""Small whole numbers that wrap in functions: called in loops, given parts of tensors, asked by loaders."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501

SLUG = "uint8-arithmetic-wraps"
SETUP = """\
import torch
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(0)
frames = [torch.full((4, 4), n, dtype=torch.uint8) for n in (90, 60, 80)]
sound = (torch.sin(torch.arange(800) / 9) * 20000).to(torch.int16)
video = torch.randint(0, 256, (9, 4, 4), dtype=torch.uint8)
def moved(before, after):
    gap = after - before
    return gap.float().mean()
def energy(wave, size=80):
    rows = {rows}
    power = rows * rows
    return power.float().mean()
class Clips(Dataset):
    def __init__(self, video):
        self.video, self.last, self.kind = video, video[0], video.dtype
    def __len__(self):
        return len(self.video) - 1
    def __getitem__(self, i):
        {item}
    def seen(self, frame):
        gap = frame - self.last
        self.last = frame
        return gap
clips = Clips(video)
loader = DataLoader(clips, batch_size=4, shuffle=True)"""
ITEM = "return (self.video[i + 1] - self.video[i]).float() / 255"


def found(cell, rows="wave[1:3]", item=ITEM):
    setup = SETUP.replace("{rows}", rows).replace("{item}", item)
    return findings_in(setup, cell, slug="uint8-arithmetic-wraps", fails=False)


@pytest.mark.parametrize(
    "cell",
    [
        "gaps = [moved(a, b) for a, b in zip(frames, frames[1:])]",
        "gaps = {i: moved(frames[0], frame) for i, frame in enumerate(frames)}",
        "for a, b in [(frames[0], frames[1]), (frames[1], frames[0])]:\n    gap = moved(a, b)",
        "def run(all):\n    return [moved(a, b) for a, b in zip(all, all[1:])]\ngaps = run(frames)",
        "gaps = sum(moved(frame, frames[1]) for frame in frames)",
    ],
)
def test_a_call_in_a_loop(cell):
    (finding,) = found(cell)
    assert "`after - before` is worked out in uint8" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "gaps = [moved(b, a) for a, b in [(frames[0], frames[1])]]",
        "gaps = [moved(a.int(), b.int()) for a, b in zip(frames, frames[1:])]",
        "for a, b in [(frames[0], frames[1])]:\n    a, b = a.int(), b.int()\n    gap = moved(a, b)",
        "for a in frames:\n    a = a.float()\n    gap = moved(a, a)",
        "pairs = [(frames[1], frames[0])]\ngaps = [moved(a, b) for a, b in pairs]\npairs = [(frames[0], frames[1])]",
    ],
)
def test_a_call_in_a_loop_that_fits(cell):
    assert not found(cell)


@pytest.mark.parametrize(
    "rows", ["wave[10:300]", "wave.unfold(0, size, size)", "wave.view(-1, 80)[2:]", "wave.detach()"]
)
def test_a_part_of_what_a_function_is_given(rows):
    (finding,) = found("e = energy(sound)", rows)
    assert "`rows * rows` is worked out in int16" in finding.message


@pytest.mark.parametrize(
    "rows", ["wave[:1]", "wave.unfold(0, size, size).int()", "wave.float().view(-1, 80)", "wave // 200"]
)
def test_a_part_that_fits(rows):
    assert not found("e = energy(sound)", rows)


@pytest.mark.parametrize(
    "cell",
    [
        "for batch in loader:\n    mean = batch.mean()",
        "for i, batch in enumerate(loader):\n    mean = batch.mean()",
        "batch = next(iter(loader))",
        "for batch in DataLoader(clips, batch_size=2):\n    pass",
        "def run(data):\n    return [batch.mean() for batch in data]\nmeans = run(loader)",
    ],
)
def test_items_that_a_loader_asks_for(cell):
    (finding,) = found(cell)
    assert "`self.video[i + 1] - self.video[i]` is worked out in uint8" in finding.message
    assert finding.cell == 1


@pytest.mark.parametrize(
    "item",
    [
        "return self.video[i + 1].float() - self.video[i].float()",
        "return self.video[i].int() - 128",
        "return self.video[i] // 2",
        "return self.video[i], self.video[i + 1]",
    ],
)
def test_items_that_fit(item):
    assert not found("for batch in loader:\n    pass", item=item)


def test_an_attribute_that_the_method_changes_is_not_known_any_more():
    assert not found("clips.last = torch.zeros(4, 4, dtype=torch.uint8)\ngap = clips.seen(frames[0])")


def test_nothing_is_asked_of_a_loader_that_does_not_run():
    assert not found("size = loader.batch_size")


BRANCHES = {
    "if self.raw:\n            return self.video[i] + 100\n        return self.video[i].float()": False,
    "if not self.raw:\n            return self.video[i].float()\n        return self.video[i] + 100": False,
    "if self.kind.is_signed:\n            return self.video[i] + 100\n        return self.video[i].float()": False,
    "gap = self.video[i] + 100 if self.raw else self.video[i]\n        return gap": False,
    "if i < 0:\n            raise IndexError\n        return self.video[i] + 100": True,
    "if not self.raw:\n            return self.video[i] + 100\n        return self.video[i].float()": True,
    "with torch.no_grad():\n            return self.video[i] + 100": True,
}


@pytest.mark.parametrize("item", BRANCHES)
def test_a_branch_that_may_not_have_run_is_not_judged(item):
    assert bool(found("clips.raw = False\nfor batch in loader:\n    pass", item=item)) is BRANCHES[item]


@pytest.mark.parametrize("words", ["# mod 256", "; text = bytes(mixed.flatten().tolist())"])
def test_bytes_that_go_round_on_purpose(words):
    assert not found(f"mixed = video[1] - video[0]{words}")
    assert found("mixed = video[1] - video[0]")


BRIGHT = "img = self.video[i]\n        img = (img + 60).clamp(0, 255)\n        return img.float()"


@pytest.mark.parametrize("cell", ["one = clips[0]", "batch = next(iter(loader))", "one, two = clips[0], clips[3]"])
def test_an_item_of_a_data_set_that_is_given_a_name_twice(cell):
    (finding,) = found(cell, item=BRIGHT)
    assert "`img + 60` is worked out in uint8" in finding.message


@pytest.mark.parametrize(
    "item",
    [
        BRIGHT.replace("self.video[i]\n", "self.video[i].float()\n"),
        BRIGHT.replace("self.video[i]\n", "self.video[i]\n        img = img.int()\n"),
        BRIGHT.replace(
            "self.video[i]\n", "self.video[i]\n        if self.last is not None:\n            img = img.int()\n"
        ),
        BRIGHT.replace("self.video[i]\n", "self.video[i]\n        i = i + 1\n").replace(
            "img +", "self.video[i].int() +"
        ),
        "img = self.video[i]\n        for k in range(2):\n            img = img.int() + 60\n        return img",
    ],
)
def test_a_name_that_stands_for_larger_numbers_by_then(item):
    assert found("one = clips[0]", item=item) == []


@pytest.mark.parametrize("cell", ["one = video[0]", "clips.video[0]", "one = clips"])
def test_what_asks_no_item(cell):
    assert found(cell, item=BRIGHT) == []


def test_a_name_given_twice_in_the_cell():
    (finding,) = found("img = video[0]\nimg = (img + 60).clamp(0, 255)")
    assert finding.line == 2
    assert found("img = video[0]\nimg = img.int()\nimg = (img + 60).clamp(0, 255)") == []
    assert found("img = video[0]\nimg = img // 4\nimg = (img + 60).clamp(0, 255)") == []


SUMS = "video = torch.randint(60, 200, (6, 4, 4), dtype=torch.uint8)\nframes, n = [*video], 6\n"
MEAN = """\
def mean(frames):
    total = {begin}
    for frame in {frames}:
        {add}
    return total / len(frames)
out = mean({given})
"""


def a_mean(begin="torch.zeros_like(frames[0])", add="total += frame", frames="frames", given="frames"):
    return SUMS + MEAN.format(begin=begin, add=add, frames=frames, given=given)


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        (a_mean(), "total = total.float()"),
        (a_mean("torch.zeros_like(next(iter(frames)))"), "total = total.float()"),
        (a_mean("torch.zeros(4, 4, dtype=torch.uint8)", "total = total + frame"), "total = total.float()"),
        (a_mean("frames[0].clone()", frames="frames[1:]"), "total = total.float()"),
        (a_mean("0", "total = total + frame", given="video"), "frame = frame.float()"),
        (
            SUMS + "total = torch.zeros_like(frames[0])\nfor frame in frames:\n    total += frame\nout = total / n",
            "total = total.float()",
        ),
    ],
)
def test_bytes_that_a_loop_adds_up(cell, fix):
    (finding,) = findings_in("import torch", cell, slug="uint8-arithmetic-wraps", fails=False)
    assert finding.fix.startswith(fix)
    assert "in uint8" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        a_mean("torch.zeros(4, 4)"),
        a_mean("torch.zeros_like(frames[0], dtype=torch.int32)"),
        a_mean("0.0", "total = total + frame"),
        a_mean("torch.zeros_like(frames[0]).float()"),
        a_mean(add="total += frame // 100"),
        a_mean(given="[one // 60 for one in frames]"),
        a_mean(given="[one.int() for one in frames]"),
        a_mean(given="[one // 200 for one in frames]"),
        SUMS
        + "low = [one // 60 for one in frames]\ntotal = torch.zeros_like(low[0])\nfor one in low:\n    total += one",
        SUMS + "total = torch.zeros_like(frames[0])\nfor frame in frames:\n    frame = frame // 99\n    total += frame",
    ],
)
def test_sums_of_bytes_that_fit(cell):
    assert findings_in("import torch", cell, slug="uint8-arithmetic-wraps", fails=False) == []


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("n = torch.bincount(frame + 250)", "frame = frame.long()"),
        ("at = frame * 99\nn = torch.zeros(999)[at.long()]", "frame = frame.long()"),
        ("n = torch.bincount(frame)\ngap = (frame * 99).sum() * 1.0", "frame = frame.long()"),
        ("n = torch.bincount(other)\ngap = (frame * 99)[frame > 6].sum() * 1.0", "frame = frame.float()"),
    ],
)
def test_what_is_counted_stays_a_whole_number(line, fix):
    made = "import torch\nother = torch.tensor([3, 2, 1, 0, 0, 0], dtype=torch.uint8)\nframe = other.flip(0) + 6"
    (finding,) = findings_in(made, line, slug=SLUG, fails=False)
    assert finding.fix.startswith(fix)
    assert not findings_in(made, finding.fix.partition("  #")[0], line, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("name", "line", "fix"),
    [
        ("masks", "target = masks - 1", "masks = masks.long()  # whole numbers of 64 bits, before the arithmetic"),
        ("levels", "labels = levels - other", "levels = levels.long()"),
        ("frame", "gap = frame - other", "frame = frame.float()  # or .int(), before the arithmetic"),
    ],
)
def test_numbers_of_classes_are_no_picture(name, line, fix):
    made = f"import torch\nother = torch.tensor([3, 2, 1, 0, 0, 0], dtype=torch.uint8)\n{name} = other.flip(0)"
    (finding,) = findings_in(made, line, slug=SLUG)
    assert finding.fix.startswith(fix)
    assert not findings_in(made, finding.fix.partition("  #")[0], line, slug=SLUG)


LOW = "frames = [torch.full((4, 4), 20, dtype=torch.uint8) for _ in range(4)]\ntotal = torch.zeros_like(frames[0])\n"
LOOP = "for f in frames:\n    total += f\n"
BRIGHTER = "def brighter(all):\n    for one in all:\n        one.mul_(12)\n"


@pytest.mark.parametrize(
    "cell",
    [
        # The pieces, or the list, are others after the loop.
        LOW + LOOP + "frames.append(total * 2)\nframes.append(total * 2)",
        LOW + LOOP + "frames.extend([total, total, total])",
        LOW + LOOP + "frames += [total, total, total]",
        LOW + LOOP + "frames[0] = torch.full((4, 4), 250, dtype=torch.uint8)",
        LOW + LOOP + "for f in frames:\n    f.mul_(12)",
        LOW + LOOP + "for f in frames:\n    f *= 12",
        LOW + LOOP + "for i, f in enumerate(frames):\n    f[:] = 250",
        LOW + LOOP + "first = frames[0].view(-1)\nfirst.fill_(250)",
        LOW + LOOP + "frames[0].numpy()[:] = 250",
        LOW + LOOP + "torch.add(frames[0], 230, out=frames[0])",
        BRIGHTER + LOW + LOOP + "brighter(frames)",
        LOW + "a, b = frames[0], frames[1]\nfor f in [a, b]:\n    total += f\na.fill_(250)",
        LOW + LOOP + "    f.mul_(12)",
        LOW + LOOP.replace("f in frames", "i in range(4)").replace("+= f", "+= frames[i]") + "for f in frames:\n    f.mul_(12)",
        LOW + "def mean(frames):\n    total = torch.zeros_like(frames[0])\n    for f in frames:\n        total += f\n    return total\n"
        "out = mean(frames)\nfor one in frames:\n    one.mul_(12)",
        LOW + "def mean(all):\n    total = torch.zeros_like(all[0])\n    for f in all:\n        total += f\n    return total\n"
        "out = mean(frames)\nframes.append(out * 2)\nframes.append(out * 2)",
        # The sum begins anew in between.
        SUMS + "total = torch.zeros_like(frames[0])\nfor f in frames:\n    total.zero_()\n    total += f",
        SUMS + "total = torch.zeros_like(frames[0])\nfor f in frames:\n    total[:] = 0\n    total += f",
        # Bytes that no name leads to are written.
        "import numpy as np\nmemory = np.full((4, 16), 20, dtype=np.uint8)\nframes = [torch.from_numpy(row) for row in memory]\n"
        "total = torch.zeros_like(frames[0])\n" + LOOP + "memory[:] = 250",
    ],
)  # fmt: skip
def test_what_is_added_up_is_another_after_the_loop(cell):
    assert findings_in("import torch", cell, slug="uint8-arithmetic-wraps", fails=False) == []


@pytest.mark.parametrize(
    "later",
    [
        "total //= 6",
        "total = total / 6",
        "shown = []\nshown.append(total)",
        "n += 1",
        "print(len(frames), frames[0].max())",
    ],
)
def test_sums_that_wrapped_whatever_comes_later(later):
    cell = SUMS + "total = torch.zeros_like(frames[0])\nfor frame in frames:\n    total += frame\n" + later
    (finding,) = findings_in("import torch", cell, slug="uint8-arithmetic-wraps", fails=False)
    assert finding.fix.startswith("total = total.float()")


BYTES = """\
import torch
a, b = torch.tensor([3, 200, 9], dtype=torch.uint8), torch.tensor([5, 100, 250], dtype=torch.uint8)"""


@pytest.mark.parametrize(
    "cell",
    [
        "turn = (a - b).to(torch.int8)",
        "turn = torch.sub(a, b).view(torch.int8).float()",
        "moved = (a - b).to(torch.bool)",
        "same = (a - b).abs().max() == 0",
        "x = a + b\nx -= b",
        "def seal(m): return m + b\ndef unseal(c): return c - b\nout = unseal(seal(a))",
        "d = a - b\nd[a < b] = 0",
        "more = a > b\nd = (a - b) * more",
    ],
)
def test_bytes_that_come_round(cell):
    assert not findings_in(BYTES, cell, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("cell", "severity"),
    [
        ("enc = a + b", "hint"),
        ("def code(x): return x[1:] - x[:-1]\nd = code(a)", "hint"),
        ("d = a - b\nmae = d.float().abs().mean()", "error"),
        ("print((a > b).sum())\nd = a - b\nmae = d.float().abs().mean()", "error"),
        ("def gap(x, y): return x - y\nmae = gap(a, b).float().mean()", "error"),
        ("d = ((a - b) ** 2).to(torch.float32)", "error"),
    ],
)
def test_bytes_that_stay_bytes_may_be_meant(cell, severity):
    assert {one.severity for one in findings_in(BYTES, cell, slug=SLUG, fails=False)} == {severity}


ITEMS = """\
import torch
class Rows:
    def __init__(self):
        self.x = torch.full((8, 3), {}, dtype=torch.uint8)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return (self.x[i] - 3).float()
rows, wanted = Rows(), False
"""


@pytest.mark.parametrize("run", ["for x in rows: break", "for i in range(len(rows)): x = rows[i]"])
def test_items_that_a_loop_asks_for(run):
    (finding,) = findings_in(ITEMS.format(1), run, slug="uint8-arithmetic-wraps")
    assert (finding.cell, finding.line) == (1, 8)


@pytest.mark.parametrize(
    ("start", "run"),
    [
        (1, "xs = [rows[i] for i in range(8) if wanted]"),
        (1, "x = wanted and rows[0]"),
        (9, "xs = [rows[i] for i in range(8)]\nrows.x.zero_()"),
        (9, "for x in rows: break\nrows.x = torch.zeros(8, 3, dtype=torch.uint8)"),
        (9, "xs = [(x - 3).float() for x in rows.x]\nrows.x.zero_()"),
    ],
)
def test_items_that_nobody_asks_for_or_that_changed_later(start, run):
    assert not findings_in(ITEMS.format(start), run, slug="uint8-arithmetic-wraps")


TABLES = """
q, w = torch.full((3, 8), 20, dtype=torch.int8), torch.full((2, 8), 15, dtype=torch.int8)
on = torch.tensor([0, 1], dtype=torch.int8)
def products(a, b):
    return (a[:, None] * b[None]).sum(-1)
"""


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("rows = (q[:, None] * w[None]).sum(-1)", "q[:, None] * w[None]"),
        ("rows = (q[:, None, :] * w).sum(-1)", "q[:, None, :] * w"),
        ("rows = products(q, w)", "a[:, None] * b[None]"),
    ],
)
def test_products_of_all_pairs(cell, text):
    (finding,) = findings_in(SETUP.replace("{rows}", "wave").replace("{item}", ITEM) + TABLES, cell, slug=SLUG)
    assert f"`{text}` is worked out in" in finding.message


@pytest.mark.parametrize(
    "cell",
    ["rows = (q[:, None].int() * w[None]).sum(-1)", "rows = (q[:, None, :2] * on[None]).sum(-1)",
     "same = (q[:, None] - w[None]) == 0"],
)  # fmt: skip
def test_tables_that_fit(cell):
    assert not findings_in(SETUP.replace("{rows}", "wave").replace("{item}", ITEM) + TABLES, cell, slug=SLUG)
