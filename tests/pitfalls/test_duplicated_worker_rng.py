"""Generators in data sets; the loaders are only begun, which is when they are looked at."""

from typing import Any

import pytest
import torch

from tests.cells import a_notebook, findings_in

SETUP = """
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset
class Noise:
    def __init__(self):
        self.state = np.random.RandomState(3)
    def __call__(self, x):
        return x + self.state.rand()
class Rows(Dataset):
    def __init__(self, rng=None, transform=None):
        self.rng, self.transform = rng, transform
        self.order = rng.random() if rng is not None and hasattr(rng, "random") else 0
    def __len__(self):
        return 8
class Drawn(Rows):
    def __getitem__(self, i):
        return i + self.rng.random()
class Jittered(Rows):
    def __getitem__(self, i):
        return self.transform(i)
class Chained(Rows):
    def __getitem__(self, i):
        for one in self.transform:
            i = one(i)
        return i
class Fixed(Rows):
    def __getitem__(self, i):
        return i + self.order
class Global(Rows):
    def __getitem__(self, i):
        return i + shared.random()
class Apart(Rows):
    def __getitem__(self, i):
        info = torch.utils.data.get_worker_info()
        return i + self.rng.random() * info.id
class Plain(Rows):
    def __getitem__(self, i):
        return i
class Stream(IterableDataset):
    def __init__(self):
        self.rng = random.Random(1)
    def __iter__(self):
        return (self.rng.random() for _ in range(4))
def prepare(worker):
    torch.utils.data.get_worker_info().dataset.rng = random.Random(torch.initial_seed())
def seed_global(worker):
    np.random.seed(worker)
def begin(data, workers=2, **options):
    loader = DataLoader(data, batch_size=2, num_workers=workers, multiprocessing_context="fork", **options)
    for batch in loader:
        pass
"""
FOUND = {
    "a number called seed": (
        "class Named(Drawn):\n    def __init__(self): self.seed, self.rng = 3, random.Random(3)\n"
        "    def describe(self): return f'{self.seed}'\nbegin(Named())"
    ),
    "of the class": "class Shared(Drawn):\n    rng = random.Random(3)\n    def __init__(self): pass\nbegin(Shared())",
    "of a class before": (
        "class Base(Drawn):\n    rng = np.random.default_rng(3)\n    def __init__(self): self.n = 1\n"
        "class Below(Base):\n    pass\nbegin(Below())"
    ),
    "seeded by the constructor alone": (
        "class Begun(Drawn):\n    def __init__(self): self.seed(3)\n"
        "    def seed(self, n): self.rng = np.random.default_rng(n)\nbegin(Begun())"
    ),
    "numpy": "begin(Drawn(np.random.default_rng(7)))",
    "random": "begin(Drawn(random.Random(7)), workers=3)",
    "in a transform": "begin(Jittered(transform=Noise()))",
    "in a subset": "begin(Subset(Drawn(random.Random(7)), [0, 1, 2, 3]))",
    "a stream": "begin(Stream())",
    "a variable of the notebook": "shared = np.random.default_rng(7)\nbegin(Global())",
    "a variable in a transform": (
        "shared = random.Random(7)\ndef jitter(i): return i + shared.random()\nbegin(Jittered(transform=jitter))"
    ),
    "in what puts batches together": (
        "class Mix:\n    def __init__(self): self.rs = np.random.RandomState(1)\n"
        "    def __call__(self, batch): return self.rs.rand()\nbegin(Plain(), collate_fn=Mix())"
    ),
    "a variable in a function for batches": (
        "shared = random.Random(7)\ndef mix(batch): return shared.random()\nbegin(Plain(), collate_fn=mix)"
    ),
    "a variable in a function that is called": (
        "shared = random.Random(7)\ndef jitter(i): return i + shared.random()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return jitter(i)\nbegin(Calls())"
    ),
    "two calls deep": (
        "shared = random.Random(7)\ndef draw(): return shared.random()\ndef jitter(i): return i + draw()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return self.get(i)\n"
        "    def get(self, i): return jitter(i)\nbegin(Calls())"
    ),
    "an object of the notebook": (
        "noise = Noise()\nclass Calls(Rows):\n    def __getitem__(self, i): return noise(i)\nbegin(Calls())"
    ),
    "in a list of transforms": "begin(Chained(transform=[abs, Noise()]))",
    "in a transform of a subset": "begin(Subset(Jittered(transform=Noise()), [0, 1, 2, 3]))",
    "global seeds do not help": "begin(Drawn(random.Random(7)), worker_init_fn=seed_global)",
}
QUIET = {
    "another for each sample": (
        "class Anew(Rows):\n    def __getitem__(self, i):\n        self.rng = random.Random(i)\n"
        "        return self.rng.random()\nbegin(Anew(random.Random(3)))"
    ),
    "of the class, which draws nothing": (
        "class Unread(Plain):\n    rng = random.Random(3)\n    def __init__(self): pass\nbegin(Unread())"
    ),
    "of the class, prepared": (
        "class Shared(Drawn):\n    rng = random.Random(3)\n    def __init__(self): pass\n"
        "def anew(worker): Shared.rng = random.Random(worker)\nbegin(Shared(), worker_init_fn=anew)"
    ),
    "of the class, behind another below": (
        "class Base(Drawn):\n    rng = random.Random(3)\n    def __init__(self): pass\n"
        "class Below(Base):\n    @property\n    def rng(self): return random.Random(torch.initial_seed())\n"
        "begin(Below())"
    ),
    "of the class, seeded for each sample": (
        "class Shared(Rows):\n    rng = random.Random(3)\n    def __init__(self): pass\n"
        "    def __getitem__(self, i):\n        self.rng.seed(i)\n        return self.rng.random()\nbegin(Shared())"
    ),
    "another for each sample, in a method": (
        "class Anew(Drawn):\n    def init(self, i): self.rng = np.random.Generator(np.random.PCG64(i))\n"
        "    def __getitem__(self, i):\n        self.init(i)\n        return self.rng.random()\n"
        "begin(Anew(random.Random(3)))"
    ),
    "another for each sample, in a transform": (
        "class Aug:\n    def __init__(self): self.reset(0)\n    def reset(self, i): self.rng = random.Random(i)\n"
        "    def __call__(self, i): return i + self.rng.random()\n"
        "class Anew(Rows):\n    def __getitem__(self, i):\n        self.transform.reset(i)\n"
        "        return self.transform(i)\nbegin(Anew(transform=Aug()))"
    ),
    "seeded by a method with a name": (
        "class Seeded(Rows):\n    def __getitem__(self, i):\n        f = self.rng.seed\n        f(i)\n"
        "        return self.rng.random()\nbegin(Seeded(random.Random(7)))"
    ),
    "seeded for each sample": (
        "class Seeded(Rows):\n    def __getitem__(self, i):\n        self.rng.seed(i)\n"
        "        return self.rng.random()\nbegin(Seeded(random.Random(3)))"
    ),
    "a variable in a function that is not called": (
        "shared = random.Random(7)\ndef jitter(i): return i + shared.random()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return i\nbegin(Calls())"
    ),
    "a function that only a drawing of samples calls": (
        "shared = random.Random(7)\ndef some(): return shared.random()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return i\n    def show(self): return some()\nbegin(Calls())"
    ),
    "a function that tells workers apart": (
        "shared = random.Random(7)\n"
        "def jitter(i): return i + shared.random() * torch.utils.data.get_worker_info().id\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return jitter(i)\nbegin(Calls())"
    ),
    "a function that is prepared": (
        "shared = random.Random(7)\ndef jitter(i): return i + shared.random()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return jitter(i)\n"
        "def anew(worker):\n    global shared\n    shared = random.Random(worker)\nbegin(Calls(), worker_init_fn=anew)"
    ),
    "an object that is prepared": (
        "noise = Noise()\nclass Calls(Rows):\n    def __getitem__(self, i): return noise(i)\n"
        "def anew(worker): noise.state = np.random.RandomState(worker)\nbegin(Calls(), worker_init_fn=anew)"
    ),
    "an object that does not draw": (
        "class Fixed2:\n    def __init__(self): self.state = random.Random(1)\n"
        "    def __call__(self, i): return i\nfixed = Fixed2()\n"
        "class Calls(Rows):\n    def __getitem__(self, i): return fixed(i)\nbegin(Calls())"
    ),
    "a variable that is prepared": (
        "shared = random.Random(7)\ndef anew(worker):\n    global shared\n    shared = random.Random(worker)\n"
        "begin(Global(), worker_init_fn=anew)"
    ),
    "an attribute of the same name": "order = random.Random(7)\nbegin(Fixed())",
    "one worker": "begin(Drawn(random.Random(7)), workers=1)",
    "no workers": "for batch in DataLoader(Drawn(random.Random(7)), batch_size=2):\n    pass",
    "only when made": "begin(Fixed(random.Random(7)))",
    "told apart": "begin(Apart(random.Random(7)))",
    "prepared": "begin(Drawn(random.Random(7)), worker_init_fn=prepare)",
    "a function for batches that draws nothing": (
        "shared = random.Random(7)\ndef mix(batch): return len(batch)\nbegin(Plain(), collate_fn=mix)"
    ),
    "global numbers": "begin(Jittered(transform=lambda i: i + np.random.rand()))",
    "of the sampler": "begin(Fixed(), shuffle=True, generator=torch.Generator().manual_seed(0))",
}

OF_NUMPY, OF_RANDOM = "Jittered(transform=lambda i: i + np.random.rand())", "Jittered(transform=jitter)"
OF_TORCH = "class Crop(Rows):\n    def __getitem__(self, i): return i + torch.rand(1)\n"
JITTER = "def jitter(i): return i + random.gauss(0, 1)\n"


def prepared(*lines, data=OF_NUMPY, before="", parameter="worker"):
    body = "".join(f"    {line}\n" for line in lines)
    return f"{before}def prepare({parameter}):\n{body}begin({data}, worker_init_fn=prepare)"


FOUND.update(
    {
        "numpy seeded alike": prepared("np.random.seed(42)", "torch.manual_seed(42)"),
        "a seed of the notebook": prepared("np.random.seed(SEED)", before="SEED = 3\n"),
        "random seeded alike": prepared("random.seed(0)", data=OF_RANDOM, before=JITTER),
        "torch seeded alike": prepared("torch.manual_seed(0)", data="Crop()", before=OF_TORCH),
        "a seed of a dictionary": prepared('np.random.seed(CONFIG["seed"])', before='CONFIG = {"seed": 42}\n'),
        "a seed of a class": prepared("np.random.seed(CFG.SEED)", before="class CFG: SEED = 42\n"),
        "in a lambda": f"begin({OF_NUMPY}, worker_init_fn=lambda _: np.random.seed(1))",
    }
)
QUIET.update(
    {
        "seeded by the worker": prepared("np.random.seed(42 + worker)"),
        "seeded by the process": prepared("np.random.seed(torch.initial_seed() % 2**32)"),
        "seeded by the system": prepared("np.random.seed()"),
        "seeded by an entry and the worker": prepared('np.random.seed(C["a"] + worker)', before='C = {"a": 4}\n'),
        "seeded by an entry and another": prepared(
            'np.random.seed(C["a"] + np.random.get_state()[2])', before='C = {"a": 4}\n'
        ),
        "an entry that is called": prepared(
            'np.random.seed(C["a"]())', before='C = {"a": lambda: torch.initial_seed() % 999}\n'
        ),
        "an entry that is none": prepared('np.random.seed(C["a"])', before='C = {"a": None}\n'),
        "a property": prepared(
            "np.random.seed(CFG.SEED)",
            before="class F:\n    SEED = property(lambda _: torch.initial_seed() % 999)\nCFG = F()\n",
        ),
        "seeded by none": prepared("np.random.seed(None)"),
        "seeded by what torch seeded": prepared("random.seed(random.random())", data=OF_RANDOM, before=JITTER),
        "seeded by a variable": prepared("own = worker", "np.random.seed(own)"),
        "seeded by a default": prepared("np.random.seed(worker)", parameter="worker=1"),
        "another source is seeded alike": prepared("np.random.seed(42)", data=OF_RANDOM, before=JITTER),
        "nothing is drawn": prepared("np.random.seed(42)", data="Plain()"),
        "seeded for each sample": prepared(
            "np.random.seed(42)",
            data="Jittered(transform=own)",
            before="def own(i):\n    np.random.seed(i)\n    return np.random.rand()\n",
        ),
    }
)

PIPE = """
class Turn:
    def __init__(self): self.rng = np.random.RandomState(3)
    def __call__(self, i): return i + {draw}
class Pipe:
    def __init__(self): self.steps = [Turn()]
    def run(self, i): return [one(i) for one in self.{steps}]
    def size(self): return 4
class Piped(Rows):
    def __init__(self): self.pipe = Pipe()
    def __getitem__(self, i): return torch.tensor(self.pipe.{asked})
begin(Piped())
"""
FOUND["in what an object of the data set holds"] = PIPE.format(draw="self.rng.rand()", steps="steps", asked="run(i)")
QUIET.update(
    {
        "another method is asked": PIPE.format(draw="self.rng.rand()", steps="steps", asked="size()"),
        "other steps are taken": PIPE.format(draw="self.rng.rand()", steps="steps[:0]", asked="size()"),
        "steps that draw nothing": PIPE.format(draw="1", steps="steps", asked="run(i)"),
    }
)

MODES = """
class Modes(Rows):
    mode, p = "val", 0.5
    def noise(self): return self.rng.random()
    def __getitem__(self, i):
        x = float(i)
        {}
        return x
data = Modes(random.Random(7))
"""
DRAWN = {
    "under a test that does not hold": "if self.mode == 'train': x += self.rng.random()",
    "under another": "if self.mode != 'val': x += self.noise()",
    "in the other branch": "if self.mode in ('val', 'test'): pass\n        else: x += self.rng.random()",
    "after a return": "if self.mode == 'val': return x\n        x += self.rng.random()",
    "in one of two": "x += self.rng.random() if self.mode == 'train' else 0",
    "after and": "x += self.mode == 'train' and self.rng.random()",
    "where it is not known": "if len(str(i)) > 5: x += self.rng.random()",
}
for _name, _line in DRAWN.items():
    QUIET[_name] = MODES.format(_line) + "begin(data)"
    if "known" not in _name:
        FOUND[_name.replace("does not hold", "holds")] = MODES.format(_line) + "data.mode = 'train'\nbegin(data)"
    _numpy = MODES.format(_line.replace("self.rng.random()", "np.random.rand()")).replace("self.rng", "np.random")
    QUIET[f"{_name}, numpy"] = f"{_numpy}{prepared('np.random.seed(42)', data='data')}"
FOUND.update(
    {
        "chance first": MODES.format("if self.rng.random() < self.p: x = -x") + "begin(data)",
        "by a method": MODES.format("x += self.noise()") + "begin(data)",
        "in a loop": MODES.format("for _ in range(2): x += self.rng.random()") + "begin(data)",
        "in a comprehension": MODES.format("x += sum(self.rng.random() for _ in range(2))") + "begin(data)",
        "by another name": MODES.format("rng = self.rng; x += rng.random()") + "begin(data)",
        "a transform that is there": (
            "class If(Rows):\n    def __getitem__(self, i):\n"
            "        return self.transform(i) if self.transform is not None else i\nbegin(If(transform=Noise()))"
        ),
    }
)
QUIET.update(
    {
        "a transform for another mode": (
            "class If(Rows):\n    train = False\n    def __getitem__(self, i):\n"
            "        return self.transform(i) if self.train else i\nbegin(If(transform=Noise()))"
        ),
        "a state that is put back": prepared(
            "np.random.seed(42)",
            data="Jittered(transform=own)",
            before="def own(i):\n    keep = np.random.get_state()\n    x = np.random.PCG64(i).random_raw() % 7\n"
            "    np.random.set_state(keep)\n    return float(x)\n",
        ),
        "a generator of another kind": prepared(
            "np.random.seed(42)",
            data="Jittered(transform=own)",
            before="def own(i):\n    return float(np.random.PCG64(i).random_raw() % 7)\n",
        ),
    }
)


GENERATORS = """
class World:
    def __init__(self): self.rng, self.scale, self.size = np.random.default_rng(3), 2.0, 4
    def setup(self): return self.rng.normal()
    def apply(self, x): return x * self.scale
    def reseed(self, i): self.rng = np.random.default_rng(i)
    def __call__(self, x): return x + self.rng.normal()
world, pyr, tg = World(), random.Random(3), torch.Generator()
def of_torch(i):
    tg.manual_seed(1000 + i)
    return torch.randn(2, generator=tg)
def of_python(i):
    pyr.seed(i)
    return pyr.random()
def anew(i):
    world.reseed(i)
    return world(i)
def mix(batch): return batch[: world.size]
class First(Rows):
    def __getitem__(self, i): return world(i)
class Second(Rows):
    def __getitem__(self, i): return world(i)
both = torch.utils.data.ConcatDataset([First(), Second()])
"""
QUIET.update(
    {
        f"only {one}": f"{GENERATORS}begin({one})"
        for one in [
            "Jittered(transform=lambda i: world.apply(i))", "Jittered(transform=of_torch)", "Plain(), collate_fn=mix",
            "Jittered(transform=of_python)", "Jittered(transform=anew)",
        ]
    }
)  # fmt: skip
FOUND["one object in two data sets"] = f"{GENERATORS}begin(both)"
FOUND["a method that draws"] = f"{GENERATORS}begin(Jittered(transform=lambda i: world.setup()))"


def test_torch_alone_gives_each_worker_its_own_numbers():
    cells = (SETUP, prepared("np.random.seed(42)", before="").replace("begin(", "loader = begin("))
    with a_notebook() as notebook:
        for cell in cells:
            notebook.run(cell)
        (finding,) = [one for one in notebook.runs[-1].findings if one.slug == "duplicated-worker-rng"]
    assert finding.subject == "prepare"
    assert finding.fix.startswith("loader = begin(Jittered(transform=lambda i: i + np.random.rand()))  # torch seeds")


SEEDED = "def fixed(worker): np.random.seed(0)\ndata = Jittered(transform=lambda i: i + np.random.rand())\n"
GIVEN, LEFT = "data, batch_size=2, num_workers=2", "multiprocessing_context='fork'"
MADE = f"DataLoader({GIVEN}, worker_init_fn=fixed, {LEFT})"


@pytest.mark.parametrize(
    ("cells", "fix"),
    [
        ([f"for b in {MADE}: pass"], f"for b in DataLoader({GIVEN}, {LEFT}):"),
        ([f"for i, b in enumerate({MADE}): pass"], f"for i, b in enumerate(DataLoader({GIVEN}, {LEFT})):"),
        ([f"dl = {MADE}", "for b in dl: pass"], f"dl = DataLoader({GIVEN}, {LEFT})"),
        ([f"dl = {MADE}\nother = {MADE}", "for b in dl: pass"], f"dl = DataLoader({GIVEN}, {LEFT})"),
        ([f"dl = {MADE}", "def go(own):\n    for b in own: pass\ngo(dl)"], f"dl = DataLoader({GIVEN}, {LEFT})"),
        ([f"def make(): return {MADE}\ndl = make()", "for b in dl: pass"], f"return DataLoader({GIVEN}, {LEFT})"),
        ([f"options = dict(worker_init_fn=fixed)\ndl = DataLoader({GIVEN}, {LEFT}, **options)", "for b in dl: pass"],
         "options = dict()"),
    ],
)  # fmt: skip
def test_the_loader_is_made_without_the_function(cells, fix):
    found = findings_in(SETUP, SEEDED, *cells, slug="duplicated-worker-rng", fails=False)
    assert [one.fix.partition("  # torch seeds")[0] for one in found] == [fix]


def found(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None]
        return [sev for _, slug, _, sev in notebook.findings() if slug == "duplicated-worker-rng"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert found(FOUND[name]) == ["warning"]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name]) == []


MIX = "class Mix:\n    def __init__(self): self.rs = {}\n    def __call__(self, batch):\n{}        return {}\n"


@pytest.mark.parametrize(
    ("made", "draw"),
    [
        ("np.random.RandomState(1)", "self.rs.rand()"),
        ("np.random.default_rng(1)", "self.rs.random()"),
        ("random.Random(1)", "self.rs.random()"),
        ("torch.Generator().manual_seed(1)", "float(torch.rand(1, generator=self.rs))"),
    ],
)
def test_what_puts_batches_together_is_seeded_once_in_each_worker(made, draw):
    data = "begin(Plain(), collate_fn=Mix())"
    (found,) = findings_in(SETUP, MIX.format(made, "", draw) + data, slug="duplicated-worker-rng", fails=False)
    fix = "".join(f"        {line}\n" for line in found.fix.splitlines())
    assert not findings_in(SETUP, MIX.format(made, fix, draw) + data, fails=False)
    names: dict[str, Any] = {}
    exec(f"{SETUP}{MIX.format(made, fix, draw)}", names)  # noqa: S102
    drawn = []
    with torch.random.fork_rng():
        for seed in (5, 6):  # of two workers, each with a copy
            torch.manual_seed(seed)
            mix = names["Mix"]()
            drawn += [mix([]), mix([])]
    assert len(set(drawn)) == len(drawn)
