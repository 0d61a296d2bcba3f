import pytest

from tests.fakes import a_run
from tests.views.samples import FINDING, PITFALL
from torch_inspector.views.card import Code, Line
from torch_inspector.views.explain import Drawing, finding_part
from torch_inspector.views.fix import fix_parts


@pytest.mark.parametrize(
    "fix",
    [
        "optimizer.zero_grad()  # once per step, before backward()",
        "with torch.no_grad():\n    w -= 0.1 * w.grad",
        "loader = DataLoader(…, batch_size=64, drop_last=True)  # for training only",
        "def record(module, inputs, output, name=name):  # a default argument is bound now",
        "if (i + 1) % 4 == 0 or i + 1 == len(loader):  # and divide the last losses anew",
        "model[0]._forward_hooks.clear()  # those that are there\n# then keep the handle, and remove() it later",
        "# next time end the line with ;\n%xdel _3",
        "%torchcheck free --yes --traceback",
    ],
)
def test_what_can_be_pasted_is_code(fix):
    assert fix_parts(fix) == [Code(fix, caption="Fix")]


@pytest.mark.parametrize(
    ("fix", "sentence"),
    [
        ("run the line that computes loss again before each backward()",) * 2,
        ("make `scaler` once, next to `optimizer`",) * 2,
        ("nn.Embedding(..., sparse=True) with torch.optim.SparseAdam moves only the rows that were looked up",) * 2,
        ("d['a_name_without…its_middle'] = 1", "d['a_name_without…its_middle'] = 1"),
        ("# give the loss raw scores,\n# without sigmoid", "give the loss raw scores, without sigmoid"),
    ],
)
def test_what_is_no_code_is_a_sentence_that_nobody_is_asked_to_copy(fix, sentence):
    assert fix_parts(fix) == [Line(f"Fix: {sentence}")]


def test_a_long_remark_stands_below_the_code():
    code, remark = (
        "loss = ((predicted - price.unsqueeze(1)) ** 2).mean()",
        "or .squeeze(1) on what it meets: both need one shape",
    )
    assert fix_parts(f"{code}  # {remark}") == [Code(code, caption="Fix"), Line(remark)]
    head = "if (i + 1) % 4 == 0 or i + 1 == len(loader):"
    assert fix_parts(f"{head}  # {remark}") == [Code(head, caption="Fix"), Line(remark)]


@pytest.mark.parametrize("fix", ["", " \n", "(" * 100_000, "x" * 1_000_000, "\x00\ud800 %\u202e"])
def test_any_text_is_drawn(fix):
    assert len(fix_parts(fix)) == bool(fix.strip())


def test_a_finding_has_it_before_the_reason():
    finding = FINDING.__class__("It went wrong.", fix="leave it out", slug=FINDING.slug)
    parts = finding_part(finding, Drawing.of(a_run(), (PITFALL,))).parts
    assert parts[0] == Line("Fix: leave it out")
