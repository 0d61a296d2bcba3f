"""Small whole numbers that wrap in tensors which functions make of arrays."""

import pytest

from tests.cells import findings_in

SETUP = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
arr = np.random.default_rng(0).integers(0, 256, size=(12, 4, 4), dtype=np.uint8)
class Digits(Dataset):
    def __init__(self, arr):
        {init}
    def __len__(self):
        return len(self.arr)
    def __getitem__(self, i):
        {item}
class Plain:
    def __init__(self, arr):
        self.arr = arr
    def __getitem__(self, i):
        {item}
def prep(a):
    t = torch.from_numpy(a)
    return (t - 128) / 128
digits, plain = Digits(arr), Plain(arr)"""
ITEM = "img = torch.from_numpy(self.arr[i])\n        img = (img - 128) / 128\n        return img.flatten()"


def found(cell, item=ITEM, init="self.arr = arr", before=""):
    setup = SETUP.replace("{item}", item).replace("{init}", init) + before
    return findings_in(setup, cell, slug="uint8-arithmetic-wraps", fails=False)


@pytest.mark.parametrize(
    "cell",
    [
        "x = digits[0]",
        "x = plain[0]",
        "for x in DataLoader(digits, batch_size=4):\n    pass",
        "for x in DataLoader(Digits(arr), batch_size=4):\n    pass",
        "for x in DataLoader(Digits(arr=arr), batch_size=4):\n    pass",
        "x = Digits(arr)[0]",
    ],
)
def test_an_item_made_of_an_array(cell):
    (finding,) = found(cell)
    assert "`img - 128` is worked out in uint8" in finding.message


@pytest.mark.parametrize(
    "item",
    [
        "img = torch.as_tensor(self.arr[i])\n        img = img - 128\n        return img.float()",
        "img = torch.tensor(self.arr[i], dtype=torch.uint8)\n        return img + 60",
        "img = torch.from_numpy(self.arr[i].copy())\n        out = (img - 128) / 128\n        return out",
        "img = torch.from_numpy(np.asarray(self.arr[i])).unsqueeze(0)\n        return img * 2",
        "return (torch.from_numpy(self.arr)[i] - 128) / 128",
    ],
)
def test_other_ways_to_make_it(item):
    assert len(found("x = digits[0]", item)) == 1


@pytest.mark.parametrize(
    "item",
    [
        ITEM.replace("(self.arr[i])", "(self.arr[i]).float()"),
        ITEM.replace("self.arr[i]", "self.arr[i].astype(np.int16)"),
        ITEM.replace("self.arr[i]", "self.arr[i] / 255"),
        ITEM.replace("from_numpy(self.arr[i])", "tensor(self.arr[i], dtype=torch.float32)"),
        ITEM.replace("from_numpy(self.arr[i])", "tensor(self.arr[i], dtype=torch.int16)"),
        "img = torch.from_numpy(self.arr[i])\n        img = img & 127\n        img = img + 128\n        return img",
        "img = torch.from_numpy(self.arr[i])\n        mask = img > 128\n        return mask * 255",
        "img = torch.tensor(self.arr[i])\n        img[img > 100] = 100\n        return img + 60",
        "img = torch.tensor(self.arr[i])\n        img.clamp_(max=100)\n        return img + 60",
        "img = torch.from_numpy(self.arr[i])\n        return img // 2",
    ],
)
def test_an_item_that_fits(item):
    assert found("x = digits[0]", item) == []


def test_a_function_that_is_given_an_array():
    assert len(found("x = prep(arr)")) == 1
    assert found("x = prep(arr.astype(np.int16))") == []
    assert found("x = prep(arr // 100 + 128)") == []


@pytest.mark.parametrize(
    "init",
    [
        "self.arr = arr.astype(np.float32)",
        "arr = arr.astype(np.int16)\n        self.arr = arr",
        "self.arr = arr // 100 + 128",
    ],
)
def test_what_a_constructor_changes(init):
    for cell in ("for x in DataLoader(Digits(arr), batch_size=4):\n    pass", "x = Digits(arr)[0]", "x = digits[0]"):
        assert found(cell, init=init) == []


def test_large_arrays_are_cut_into_first():
    (finding,) = found("x = Digits(big)[0]", before="\nbig = np.tile(arr, (6000, 4, 4))")
    assert finding.fix.startswith("img = img.float()")


MOTION = """
def motion(frames, step=1):
    diff = {diff}
    return diff
later = np.roll(arr, 1)
"""


def of_motion(diff, cell="seen = torch.from_numpy(motion(arr))"):
    return found(cell, before=MOTION.format(diff=diff))


@pytest.mark.parametrize(
    "diff",
    ["frames[1:] - frames[:-1]", "np.abs(frames[1:] - frames[:-1])", "np.subtract(frames, later)", "frames * 2",
     "frames[0] + 200", "frames ** 2", "np.square(frames)"],
)  # fmt: skip
def test_arithmetic_of_arrays_of_which_a_tensor_is_made(diff):
    (finding,) = of_motion(diff)
    assert "is worked out in uint8" in finding.message
    assert finding.fix.partition("  #")[0] in ("frames = frames.astype('int32')", "frames[0].astype('int32')")


@pytest.mark.parametrize(
    "diff",
    [
        "frames[1:].astype(int) - frames[:-1]",
        "frames[1:] / 255 - frames[:-1] / 255",
        "np.where(frames > later, frames - later, later - frames)",
        "(frames > 128) * 1",
        "frames[1:] - np.float32(3)",
        "(frames[1:] - frames[:-1]) & 255",
        "frames // 2 + 100",
    ],
)
def test_arithmetic_of_arrays_that_fits(diff):
    assert of_motion(diff) == []


def test_arrays_that_stay_arrays():
    assert of_motion("frames[1:] - frames[:-1]", "seen = motion(arr)") == []


def test_a_sum_of_bytes_beside_another_tensor():
    check = "\ndef checksum(data):\n    return (data * 31 + 7)[-1]"
    assert found("t = torch.tensor([1.0])\nseen = checksum(arr)", before=check) == []


PAIR = "\na, b = arr, np.roll(arr, 1)\n"


@pytest.mark.parametrize(
    "cell",
    ["t = torch.from_numpy(a - b)", "d = a - b\nt = torch.from_numpy(d)", "t = torch.tensor(np.abs(a - b) / 255.0)",
     "t = torch.from_numpy((a - b).astype(np.float32))"],
)  # fmt: skip
def test_the_very_result_becomes_a_tensor(cell):
    assert len(found(cell, before=PAIR)) == 1


@pytest.mark.parametrize(
    "cell",
    [
        "t = torch.from_numpy((a - b) != 0)",
        "t = torch.from_numpy(np.where(a > b, a - b, 0))",
        "t = torch.from_numpy((a - b) * (a > b))",
        "d = a - b\nd[a < b] = 0\nt = torch.from_numpy(d)",
        "d = a - b\ne = b - a\nt = torch.from_numpy(np.where(a > b, d, e))",
        "delta = a - b\nback = delta + b\nt = torch.from_numpy(back)",
        "d = a - b\nt = torch.from_numpy(np.cumsum(d, dtype=np.uint8))",
        "d = a - b\nt = torch.from_numpy(np.minimum(d, 0 - d))",
        "d = a - b\nt = torch.from_numpy(d.view(np.int8))",
        "t = torch.from_numpy(a - b).bool()",
        "f = lambda p, q: torch.from_numpy(p - q).bool()\nt = f(a, b)",
        "f = lambda p, q: p - q\nt = torch.from_numpy(f(a, b) != 0)",
    ],
)
def test_arrays_that_are_right_all_the_same(cell):
    assert found(cell, before=PAIR) == []


TENSORS = "\na, b = torch.from_numpy(arr), torch.from_numpy(np.roll(arr, 1))\n"


@pytest.mark.parametrize(
    "cell",
    [
        "moved = (a - b) != 0",
        "d = a - b\nmoved = d != 0",
        "up = torch.where(a > b, a - b, 0)",
        "m = a > b\nup = (a - b) * m",
        "d = a - b\ne = b - a\nfar = torch.where(a > b, d, e)",
        "d = a - b\nd[a.lt(b)] = 0",
        "enc = a - b\ndec = enc + b",
        "enc = a.clone()\nenc -= b\nenc += b",
    ],
)
def test_tensors_that_are_right_all_the_same(cell):
    assert found(cell, before=TENSORS) == []
    assert len(found("d = a - b\nfar = d.float().mean()", before=TENSORS)) == 1


def test_what_an_earlier_cell_took_away_is_added_back():
    for cell, count in (("dec = enc + b", 0), ("dec = enc + a", 1)):
        assert len([one for one in found(cell, before=TENSORS + "enc = a - b") if one.code == cell]) == count


def test_arrays_of_samples():
    item = "return torch.from_numpy(self.arr[i] - self.arr[0])"
    (finding,) = found("for x in DataLoader(Digits(arr), batch_size=4):\n    pass", item=item)
    assert "uint8" in finding.message
