"""Small whole numbers whose other operand, or the tensor itself, the text stores anew after the line has run."""

import pytest

from tests.cells import findings_in

SLUG = "uint8-arithmetic-wraps"
SETUP = """\
import torch
torch.manual_seed(0)
img = torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8)
small, other = img // 4, {}
class Amp:
    gain = 1
    def __call__(s, a):
        o = a * s.gain
        return o.float().mean()
amp, cfg = Amp(), {"k": 1, "rows": [img // 4]}
def by_entry(a):
    o = a * cfg["k"]
    return o.float().mean()
def of_row():
    o = cfg["rows"][0] * 2
    return o.float().mean()
def dbl(a):
    x = a * 2
    return x.float().mean()
def refill():
    global small
    small = img
def set_up():
    cfg["k"] = 200
"""


def severities(cell):
    return {one.severity for one in findings_in(SETUP, cell, slug=SLUG, fails=False)}


@pytest.mark.parametrize(
    "cell",
    [
        "v = amp(img)\namp.gain = 4",
        "v = amp(img)\nAmp.gain = 4",
        "v = amp(img)\nsetattr(amp, 'gain', 4)",
        "v = amp(img)\namp.__dict__.update(gain=4)",
        "for k in (1, 4):\n    if amp.gain == 1:\n        v = amp(small)\n    amp.gain = k",
        "v = by_entry(img)\ncfg['k'] = 200",
        "v = by_entry(img)\ncfg.update(k=200)",
        "v = by_entry(img)\ncfg.update({'k': 200})",
        "v = by_entry(img)\nfor key in ['k']:\n    cfg[key] = 200",
        "v = by_entry(img)\ncfg.update(dict(k=200))",
        "v = by_entry(img)\nset_up()",
        "v = of_row()\ncfg['rows'][0] = img",
        "v = dbl(small)\nrefill()",
        "v = dbl(small)\nglobals()['small'] = img",
        "v = dbl(small)\nglobals().update(small=img)",
        "v = dbl(small)\nsetattr(small, 'data', img)",
        "v = dbl(small)\nmatch img:\n    case small:\n        pass",
    ],
)
def test_what_is_stored_later_tells_nothing(cell):
    assert severities(cell) == set()


@pytest.mark.parametrize(
    "cell",
    [
        "amp.gain = 4\nv = amp(img)",
        "cfg['k'] = 4\nv = by_entry(img)",
        "cfg['k'] = 4\nv = by_entry(img)\ncfg['n'] = 1\nother[0] = 2",
        "cfg['k'] = 4\nv = by_entry(img)\nprint(cfg['k'], amp.gain)",
        "amp.gain = 4\nv = amp(img)\nother.update(other)",
        "v = dbl(img)\nrefill()",
        "cfg['rows'][0] = img\nv = of_row()\nother[0] = img",
    ],
)
def test_what_is_stored_before_or_is_another_is_not_proven(cell):
    assert severities(cell) == {"error" if "dbl" in cell else "hint"}
