"""What torch says on machines with CUDA, and what is made of it."""

import pytest

from tests.cells import findings_in
from tests.fakes import a_run, an_error, an_operand
from torch_inspector.pitfalls.device.device_mismatch import check

TWO = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
NEW = (
    "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_addmm)"
)
TYPES = "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"
MESSAGES = [
    TWO,
    NEW,
    TYPES,
    TYPES + " or input should be a MKLDNN tensor and weight is a dense tensor",
    "Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor at cuda:0",
    "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: cpu",
    "index_add(): self, index and source expected to be in the same device, but got (self) cuda:0, (index) cpu",
    "Tensor for argument #2 'weight' is on CPU, but expected it to be on GPU (while checking arguments for batch_norm)",
    "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
    "Tensor on device cpu is not on the expected device cuda:0!",
]
NET = {"kind": "Linear", "shape": None, "devices": ("cuda:0",)}


def found(message, *operands, **changes):
    return list(check(a_run(error=an_error(message, *operands, **changes))))


@pytest.mark.parametrize("message", MESSAGES)
def test_what_torch_says(message):
    (finding,) = found(message, an_operand("model", **NET), an_operand("features"))
    assert finding.subject == "features"
    assert finding.fix == 'features = features.to("cuda:0")'
    (finding,) = found(message)
    assert finding.subject == ""


@pytest.mark.parametrize(
    "message",
    [
        "mat1 and mat2 shapes cannot be multiplied (8x3 and 4x2)",
        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "Input type (double) and bias type (float) should be the same",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        "CUDA out of memory. Tried to allocate 20.00 MiB",
    ],
)
def test_other_errors_are_not_meant(message):
    assert found(message, an_operand("model", **NET), an_operand("features")) == []


def test_an_accelerator_is_home_and_a_module_is_moved_to_it():
    batch = an_operand("batch", devices=("cuda:0",))
    (finding,) = found(TWO, an_operand("decoder", kind="Linear", shape=None), batch)
    assert (finding.subject, finding.fix) == ("decoder", 'decoder.to("cuda:0")')


@pytest.mark.parametrize(
    ("names", "target"),
    [
        ((("device", "cuda"),), "device"),
        ((("dev", "cuda:0"),), "dev"),
        ((("device", "cpu"),), '"cuda:0"'),
        ((("device", "cuda:1"),), '"cuda:0"'),
    ],
)
def test_the_users_own_name_for_the_device(names, target):
    (finding,) = found(NEW, an_operand("model", **NET), an_operand("features"), device_names=names)
    assert finding.fix == f"features = features.to({target})"


def test_what_met_in_the_failing_operation_comes_first():
    inner = an_operand("features", nested=True)
    (finding,) = found(TWO, an_operand("model", **NET), inner, an_operand("labels"))
    assert finding.subject == "labels"


def test_the_part_of_a_module_is_named_and_the_module_moved():
    parts = (("embed.weight", "cpu"), ("head.weight", "cuda:0"))
    net = an_operand("net", kind="Net", shape=None, devices=("cpu", "cuda:0"), parts=parts)
    (finding,) = found(TWO, net, an_operand("x", devices=("cuda:0",)))
    assert (finding.subject, finding.fix) == ("net.embed.weight", 'net.to("cuda:0")')


def test_nobody_is_blamed_if_it_could_be_either():
    (finding,) = found(TWO, an_operand("a"), an_operand("b"))
    assert finding.subject == ""
    (finding,) = found(TWO, an_operand("a"))
    assert finding.subject == "a"


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("batch['x']", "batch['x'] = batch['x'].to(\"cuda:0\")"),
        ("batch[0]", 'batch[0].to("cuda:0")  # in place of batch[0]'),
        ("x.cpu()", 'x.to("cuda:0")  # instead of x.cpu()'),
        ("data.x", 'data.x = data.x.to("cuda:0")'),
        ("self.stats['a.b']", "self.stats['a.b'] = self.stats['a.b'].to(\"cuda:0\")"),
        ("self.stats['mean']", "self.stats['mean'] = self.stats['mean'].to(\"cuda:0\")"),
        ("self.mean", 'self.register_buffer("mean", ...)  # in __init__, so that .to() moves it with the module'),
    ],
)
def test_what_can_be_assigned_is(path, fix):
    (finding,) = found(TWO, an_operand("model", **NET), an_operand(path))
    assert finding.fix == fix


@pytest.mark.parametrize(
    ("call", "kind", "also"),
    [
        ("lstm(x, (h0, c0))", "float32", True),
        ("lstm(x, [c0, h0])", "float32", True),
        ("lstm(x, h0, c0)", "float32", False),
        ("lstm(x, (h0, c0))", "int64", False),
    ],
)
def test_what_is_given_together_moves_together(call, kind, also):
    operands = [an_operand("model", **NET), an_operand("h0"), an_operand("c0", dtype=kind)]
    (finding,) = found(TWO, *operands, expression=call)
    assert finding.fix.splitlines() == ['h0 = h0.to("cuda:0")', 'c0 = c0.to("cuda:0")'][: 1 + also]


GLOBAL = """import torch
weights, batch = torch.ones(3), torch.ones(3, device="meta")
def weigh(values{}):
    return (weights * values).sum()
weigh(batch{})"""


@pytest.mark.parametrize(("taken", "given", "said"), [("", "", True), (", weights", ", weights", False)])
def test_a_function_does_not_assign_a_variable_of_the_notebook(taken, given, said):
    (finding,) = findings_in(GLOBAL.format(taken, given), slug="device-mismatch", fails=True)
    assert finding.fix.startswith("weights = weights.to(")
    assert ("# where it is made, not in weigh()" in finding.fix) == said


MADE = """import torch
h = torch.ones(3, 4, device="meta")
def table(rows, columns):
    return torch.ones(rows, columns)
{}"""


@pytest.mark.parametrize(
    ("line", "subject", "fix"),
    [
        ("h = h + table(3, 4)", "table(3, 4)", "h = h + table(3, 4).to(h.device)"),
        (
            "h = torch.add(h.data, table(h.shape[0], h.shape[1]))",
            "table(h.shape[0], h.shape[1])",
            "h = torch.add(h.data, table(h.shape[0], h.shape[1]).to(h.device))",
        ),
        ("h = h * torch.arange(4)", "torch.arange(4)", "h = h * torch.arange(4, device=h.device)"),
        ("h = torch.cat([table(1, 4), h])", "table(1, 4)", "h = torch.cat([table(1, 4).to(h.device), h])"),
    ],
)
def test_what_the_line_makes_itself_is_named_and_moved(line, subject, fix):
    (finding,) = findings_in(MADE.format(line), slug="device-mismatch", fails=True)
    assert (finding.subject, finding.fix) == (subject, fix)
    assert finding.message == f"`{subject}` is on cpu, `h` on meta: torch does not mix devices."
    assert findings_in(MADE.format(fix), slug="device-mismatch") == []


def test_of_two_that_the_line_makes_neither_is_named():
    (finding,) = findings_in(
        MADE.format("h = torch.stack([h, table(3, 4), table(3, 4)])"), slug="device-mismatch", fails=True
    )
    assert finding.subject == ""


GIVEN = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 2)
    def forward(self, query):
        return self.lin(query)
net = Net().to("meta")
{made}
net({given})"""


@pytest.mark.parametrize(
    ("made", "given", "fix"),
    [
        (
            "b = {'query': torch.ones(3, 4)}",
            "**b",
            'b = {key: value.to("meta") if hasattr(value, "to") else value for key, value in b.items()}',
        ),
        ("b = (torch.ones(3, 4),)", "*b", 'b = [one.to("meta") if hasattr(one, "to") else one for one in b]'),
        ("rows = torch.ones(3, 4)", "rows", 'rows = rows.to("meta")'),
        ("rows = torch.ones(3, 4)", "query=rows", 'rows = rows.to("meta")'),
        ("rows = [torch.ones(3, 4)]", "rows[0]", 'query = query.to("meta")'),
    ],
)
def test_what_forward_is_given_moves_before_the_call(made, given, fix):
    (finding,) = findings_in(GIVEN.format(made=made, given=given), slug="device-mismatch", fails=True)
    assert finding.fix == fix + ("" if fix.startswith("query") else f"  # before net({given})")
    if not fix.startswith("query"):
        assert findings_in(GIVEN.format(made=f"{made}\n{fix}", given=given), slug="device-mismatch") == []


@pytest.mark.parametrize(
    "made",
    [
        "torch.rand(4, generator=g)",
        "torch.rand(4, out=torch.empty(4))",
        "torch.ones(4, **{'dtype': torch.float32})",
    ],
)
def test_a_generator_stays_where_it_is(made):
    (finding,) = findings_in(
        MADE.format("g = torch.Generator()"), f"h = h * {made}", slug="device-mismatch", fails=True
    )
    assert finding.fix == f"h = h * {made}.to(h.device)"
    assert findings_in(MADE.format("g = torch.Generator()"), finding.fix, fails=False) == []


MIXED = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x, labels, n=0, note=""):
        h = self.layer(x)
        return h * labels + n
net, x, labels = Net().to("meta"), torch.ones(3, 4, device="meta"), torch.ones(3, 4)
"""


@pytest.mark.parametrize(
    ("batch", "call"),
    [("{'x': x, 'labels': labels, 'n': 3, 'note': 'one'}", "net(**batch)"), ("(x, labels, 3, 'one')", "net(*batch)")],
)
def test_a_batch_may_hold_more_than_tensors(batch, call):
    (finding,) = findings_in(MIXED, f"batch = {batch}\nout = {call}", slug="device-mismatch", fails=True)
    assert finding.fix.endswith(f"  # before {call}")
    assert findings_in(MIXED, f"batch = {batch}", finding.fix, f"out = {call}", fails=False) == []


@pytest.mark.parametrize(
    ("built", "call", "name"),
    [
        ("with torch.device('meta'):\n    model = Net()", "model(ones, ones)", "model"),
        ("with torch.device(device='meta'):\n    model = nn.Linear(4, 4)", "model(ones)", "model"),
        ("layer = nn.Linear(4, 4, device='meta')", "layer(ones)", "layer"),
        ("layer = nn.Linear(4, 4, device=torch.device('meta'))", "layer(ones)", "layer"),
    ],
)
def test_what_was_built_without_weights_is_given_memory(built, call, name):
    start = (MIXED, f"{built}\nones = torch.ones(3, 4)")
    (finding,) = findings_in(*start, call, slug="device-mismatch", fails=True)
    assert finding.message == f"`{name}` is on meta, `ones` on cpu: torch does not mix devices." or name == "model"
    assert finding.fix == f'{name}.to_empty(device="cpu")  # then load its weights: on meta it has none'
    assert findings_in(*start, f"{finding.fix}\nout = {call}", slug="device-mismatch", fails=False) == []


@pytest.mark.parametrize("moved", ["net", "nn.Linear(4, 4).to('meta')", "nn.Linear(4, 4, device=where)"])
def test_what_was_moved_there_stands_for_another_device(moved):
    line = f"where = torch.device('meta')\nlayer = {moved}\nlayer(labels{', labels' if moved == 'net' else ''})"
    (finding,) = findings_in(MIXED, line, slug="device-mismatch", fails=True)
    assert "to_empty" not in finding.fix


ANCHORED = """import torch
from torch import nn
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.anchors = {made}
    def forward(self, feats):{before}
        return {line}
head = Head().to("meta")
feats = [torch.ones(2, 3, device="meta") for _ in range(2)]
head(feats)"""
LIST, TABLE = "[torch.ones(3), torch.ones(3)]", "{'a': torch.ones(3), 'b': torch.ones(3)}"
LISTED = 'self.anchors = [one.to("meta") for one in self.anchors]'
TABLED = 'self.anchors = {key: one.to("meta") for key, one in self.anchors.items()}'


@pytest.mark.parametrize(
    ("made", "line", "fix"),
    [
        (LIST, "[c(f) * a for c, f, a in zip(self.convs, feats, self.anchors)]", LISTED),
        (LIST, "sum((c(f) * a).sum() for c, (f, a) in zip(self.convs, zip(feats, self.anchors)))", LISTED),
        (LIST, "{i: feats[i] * a for i, a in enumerate(self.anchors)}", LISTED),
        (LIST, "[feats[0] * a for a in self.anchors]", LISTED),
        (TABLE, "[feats[0] * a for _, a in self.anchors.items()]", TABLED),
        (TABLE, "[feats[0] * a for a in self.anchors.values()]", TABLED),
    ],
)
def test_what_a_comprehension_gives_out_is_moved_as_a_whole(made, line, fix):
    source = ANCHORED.replace("{made}", made).replace("{line}", line)
    (finding,) = findings_in(source.replace("{before}", ""), slug="device-mismatch", fails=True)
    assert finding.subject == "self.anchors"
    assert "`a` of `self.anchors` is on cpu" in finding.message
    assert finding.fix == f"{fix}  # before the line; as buffers .to() would move them"
    assert findings_in(source.replace("{before}", f"\n        {fix}"), slug="device-mismatch", fails=False) == []


GIVEN_OUT = """import torch
from torch import nn
net = nn.Linear(3, 3).to("meta")
loader = torch.utils.data.DataLoader(torch.ones(6, 3), batch_size=2)
pairs = [(torch.ones(2, 3), 1), (torch.ones(2, 3), 2)]
rows, shift = torch.ones(4, 3), torch.ones(3, device="meta")
"""


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("[net(x) for x in loader]", "[net(x.to('meta')) for x in loader]"),
        ("[net(x) for (x, _) in pairs]", "[net(x.to('meta')) for x, _ in pairs]"),
        ("[shift + x for x in rows]", "[shift + x.to('meta') for x in rows]"),
    ],
)
def test_what_may_be_no_list_is_moved_where_it_is_given_out(line, fix):
    (finding,) = findings_in(GIVEN_OUT + line, slug="device-mismatch", fails=True)
    assert finding.fix.startswith(f"{fix}  # in place of [")
    assert findings_in(GIVEN_OUT + finding.fix, slug="device-mismatch", fails=False) == []


SHADOWED = """import torch
from torch import nn
net, xs = nn.Linear(3, 3).to("meta"), [torch.ones(2, 3), torch.ones({second})]
def go(x):
    return [net({call}) for x in xs]
go(torch.ones(4, 3, device="meta"))"""


@pytest.mark.parametrize(("second", "call"), [("2, 3", "x"), ("2, 3", "x + 1"), ("7, 3", "x"), ("7, 3", "input=x")])
def test_an_outer_variable_of_the_same_name_is_not_meant(second, call):
    (finding,) = findings_in(SHADOWED.format(second=second, call=call), slug="device-mismatch", fails=True)
    assert "`x` of `xs` is on cpu, `net` on meta" in finding.message


def test_nothing_is_said_of_the_outer_variable_where_nobody_knows_the_inner_one():
    source = SHADOWED.format(second="2, 3", call="x + 1").replace("in xs", "in iter(xs)")
    (finding,) = findings_in(source, slug="device-mismatch", fails=True)
    assert ("x (tensor (4, 3))", "meta") not in [(one.label, one.value) for one in finding.evidence]


BATCHED = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 2)
    def forward(self, rows=None, mask=None):
        return self.proj(rows * mask)
device = torch.device("meta")
net = Net().to(device)
loader = [dict(rows=torch.ones(4, 3), mask=torch.ones(4, 3)) for _ in range(2)]
pairs = [[torch.ones(4, 3), torch.ones(4, 3)] for _ in range(2)]
"""
LOST = {
    "values": (
        "for batch in loader:\n    for v in batch.values():\n        v.to(device)\n    net(**batch)",
        "for key, v in batch.items():\n    batch[key] = v.to(device)",
        "the result of `v.to(device)` in line 3 of cell 2 is thrown away",
    ),
    "items": (
        "for batch in loader:\n    for k, v in batch.items():\n        v.to(device)\n    net(**batch)",
        "batch[k] = v.to(device)",
        "the result of `v.to(device)` in line 3 of cell 2 is thrown away",
    ),
    "given to the variable of the loop": (
        "for batch in loader:\n    for k, v in batch.items():\n        v = v.to(device)\n    net(**batch)",
        "batch[k] = v.to(device)",
        "`v = v.to(device)` in line 3 of cell 2 changes the variable alone",
    ),
    "a list": (
        "for batch in pairs:\n    for one in batch:\n        one = one.to('meta')\n    net(*batch)",
        "batch = [one.to('meta') for one in batch]",
        "`one = one.to('meta')` in line 3 of cell 2 changes the variable alone",
    ),
    "one tensor": (
        "for rows, mask in pairs:\n    rows.to(device)\n    net(rows, mask)",
        "rows = rows.to(device)",
        "the result of `rows.to(device)` in line 2 of cell 2 is thrown away",
    ),
    "in a function": (
        (
            "def run(batches):\n    for batch in batches:\n        for k, v in batch.items():\n"
            "            v.to(device)\n        net(**batch)\nrun(loader)"
        ),
        "batch[k] = v.to(device)",
        "the result of `v.to(device)` in line 4 of cell 2 is thrown away",
    ),
}
BATCH = """class Batch:
    def __init__(self):
        self.rows = torch.ones(4, 3)
    def to(self, device):
        self.rows = self.rows.to(device)
batch, rows, mask = Batch(), torch.ones(4, 3), torch.ones(4, 3)
"""
OTHER = {
    "moved in place": BATCH + "batch.to(device)\nnet(batch.rows, mask)",
    "moved well after": BATCH + "rows.to(device)\nrows = rows.to(device)\nnet(rows, mask)",
    "a part given after": (
        "for batch in loader:\n    for v in batch.values():\n        v.to(device)\n"
        "    batch['rows'] = torch.zeros(4, 3)\n    net(**batch)"
    ),
    "another argument": BATCH + "rows = torch.ones(4, 3, device=device)\nrows.to(device)\nnet(rows, mask)",
    "of something else": "y = torch.ones(3)\ny.to(device)\nfor batch in loader:\n    net(**batch)",
    "a type": ("for batch in loader:\n    for v in batch.values():\n        v.to(torch.float64)\n    net(**batch)"),
    "after the call": "for batch in loader:\n    net(**batch)\n    for v in batch.values():\n        v.to(device)",
    "kept": "for batch in loader:\n    for k, v in batch.items():\n        v = v.to('cpu')\n    net(**batch)",
}


@pytest.mark.parametrize("way", LOST)
def test_a_move_that_was_lost_is_the_cause(way):
    source, fix, why = LOST[way]
    (finding,) = findings_in(BATCHED, source, slug="device-mismatch", fails=True)
    assert finding.message.endswith(f": torch does not mix devices; {why}.")
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize("way", OTHER)
def test_what_has_nothing_to_do_with_it_is_not_told(way):
    (finding,) = findings_in(BATCHED, OTHER[way], slug="device-mismatch", fails=True)
    assert finding.message.endswith(": torch does not mix devices.")


def test_a_move_of_an_earlier_cell_is_not_the_cause_of_a_later_failure():
    start = BATCHED + "rows, mask = torch.ones(4, 3), torch.ones(4, 3)"
    cells = ("rows.to(device)\ntry:\n    net(rows, mask)\nexcept RuntimeError:\n    pass", "rows = rows.to(device)")
    (finding,) = findings_in(start, *cells, "net(rows, mask)", slug="device-mismatch", fails=True)
    assert finding.message.endswith(": torch does not mix devices.")


LAMBDA = """
import torch
device = "meta"
error = lambda guess, wanted: ((guess - wanted) ** 2).mean()
guess, ones = torch.ones(4, 1, device=device), torch.ones(4, 1)
def learn():
    real = torch.ones(4, 1)
    return error(guess, real)
"""


@pytest.mark.parametrize(
    ("call", "known", "fix"),
    [
        ("learn()", " (`real` in the call)", "real = real.to(device)  # before error(guess, real)"),
        ("error(guess, ones)", " (`ones` in the call)", "ones = ones.to(device)  # before error(guess, ones)"),
        ("error(guess, torch.ones(4, 1))", "", "wanted.to(device)  # in place of wanted in the lambda"),
    ],
)
def test_what_a_lambda_was_given(call, known, fix):
    (finding,) = findings_in(LAMBDA, call, slug="device-mismatch", fails=True)
    assert finding.message.startswith(f"`wanted`{known} is on cpu, ")
    assert finding.fix == fix


def test_a_variable_that_a_lambda_reads():
    (finding,) = findings_in(LAMBDA, "less = lambda one: one - ones\nless(guess)", slug="device-mismatch", fails=True)
    assert finding.fix.startswith("ones = ones.to(device)")


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        ("less = lambda one: error(guess, one)\nless(ones)", "error(guess, one.to(device))"),
        ("[error(guess, one) for one in [ones]]", "error(guess, one.to(device))"),
        ("list(map(lambda one: error(wanted=one, guess=guess), [ones]))", "error(wanted=one.to(device), guess=guess)"),
    ],
)
def test_no_statement_stands_before_a_call_in_a_lambda(call, fix):
    (finding,) = findings_in(LAMBDA, call, slug="device-mismatch", fails=True)
    new, _, old = finding.fix.partition("  # in place of ")
    assert new == fix
    assert findings_in(LAMBDA, call.replace(old, new), slug="device-mismatch", fails=False) == []
