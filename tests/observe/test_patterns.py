"""Shapes in a graph that mean a mistake, and their near misses."""

# ruff: noqa: PLW0108  (a bound method would make the loss when the file is read)

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from torch_inspector.observe import folded_rows, kindred
from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.patterns import SOFTMAX, STRETCHED, find_patterns
from torch_inspector.observe.stretched import Other

N, C = 6, 5
LABELS = torch.arange(N) % C
# torch 2.4 does not: there the shapes are known that nodes keep for backward.
TELLS_SHAPES = hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata")
needs_shapes = pytest.mark.skipif(not TELLS_SHAPES, reason="this torch does not tell the shapes of results")


def patterns_of(loss, **shapes):
    """Patterns behind a loss; `shapes` are the variables that the user's code hands to its operations."""
    walk = GraphReader().walk([loss.grad_fn], float("inf"))
    assert walk is not None

    def other_side(stretch):
        return next((Other(name, own) for name, own in shapes.items() if own == stretch.wanted), None)

    return find_patterns(walk, other_side)


def logits(*shape):
    return nn.Linear(shape[-1], shape[-1])(torch.randn(shape))


def picture():
    return nn.Conv2d(3, C, 1)(torch.randn(2, 3, 4, 4))


def written(steps, softmax):
    """Outputs of a decoder, of which the first `softmax` steps are probabilities."""
    outputs = torch.zeros(steps, 2, C)
    for t in range(steps):
        outputs[t] = logits(2, C).softmax(1) if t < softmax else logits(2, C)
    return outputs.view(-1, C)


def in_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.cross_entropy(logits(N, C).softmax(-1), LABELS)


DOUBLE = {
    "plain": lambda: F.cross_entropy(F.softmax(logits(N, C), dim=1), LABELS),
    "layer": lambda: nn.CrossEntropyLoss()(nn.Softmax(dim=-1)(logits(N, C)), LABELS),
    "nll of log_softmax": lambda: F.nll_loss(F.log_softmax(logits(N, C).softmax(1), dim=-1), LABELS),
    "sum": lambda: F.cross_entropy(logits(N, C).softmax(1), LABELS, reduction="sum"),
    "weighted": lambda: F.cross_entropy(logits(N, C).softmax(1), LABELS, weight=torch.ones(C)),
    "smoothing": lambda: F.cross_entropy(logits(N, C).softmax(1), LABELS, label_smoothing=0.1),
    "soft targets": lambda: F.cross_entropy(logits(N, C).softmax(1), torch.full((N, C), 1 / C)),
    "flattened sequence": lambda: F.cross_entropy(logits(2, 3, C).softmax(-1).view(-1, C), LABELS),
    "reshaped sequence": lambda: F.cross_entropy(logits(2, 3, C).softmax(-1).reshape(-1, C), LABELS),
    "classes moved to the front": lambda: F.cross_entropy(
        logits(2, 3, C).softmax(-1).transpose(1, 2), LABELS.view(2, 3)
    ),
    "pixels": lambda: F.cross_entropy(picture().softmax(1), torch.zeros(2, 4, 4, dtype=torch.long)),
    "pixels, permuted": lambda: F.cross_entropy(
        picture().permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2), torch.zeros(2, 4, 4, dtype=torch.long)
    ),
    "pixels, flattened": lambda: F.cross_entropy(
        picture().softmax(1).permute(0, 2, 3, 1).reshape(-1, C), torch.zeros(32, dtype=torch.long)
    ),
    "cast": lambda: F.cross_entropy(logits(N, C).softmax(-1).double(), LABELS),
    "cloned": lambda: F.cross_entropy(logits(N, C).softmax(-1).clone(), LABELS),
    "first rows": lambda: F.cross_entropy(logits(N, C).softmax(-1)[:4], LABELS[:4]),
    "squeezed": lambda: F.cross_entropy(logits(N, 1, C).softmax(-1).squeeze(1), LABELS),
    "autocast": in_autocast,
    "clamped": lambda: F.cross_entropy(logits(N, C).softmax(-1).clamp(1e-7, 1 - 1e-7), LABELS),
    "kept above zero": lambda: F.cross_entropy(logits(N, C).softmax(-1) + 1e-8, LABELS),
    "members averaged": lambda: F.cross_entropy((logits(N, C).softmax(1) + logits(N, C).softmax(1)) / 2, LABELS),
    "members stacked": lambda: F.cross_entropy(torch.stack([logits(N, C).softmax(1)] * 3).mean(0), LABELS),
    "steps stacked": lambda: F.cross_entropy(
        torch.stack([logits(2, C).softmax(1) for _ in range(3)], 1).flatten(0, 1), LABELS
    ),
    "steps written": lambda: F.cross_entropy(written(3, softmax=3), LABELS),
}
SINGLE = {
    "logits": lambda: F.cross_entropy(logits(N, C), LABELS),
    "log of softmax": lambda: F.nll_loss(logits(N, C).softmax(-1).log(), LABELS),
    "attention": lambda: F.cross_entropy(torch.randn(N, N).requires_grad_().softmax(-1) @ torch.randn(N, C), LABELS),
    "scaled": lambda: F.cross_entropy(logits(N, C).softmax(-1) * 10, LABELS),
    "gate": lambda: F.cross_entropy(logits(N, C).softmax(-1) * logits(N, C), LABELS),
    "mean of members": lambda: F.nll_loss(torch.stack([logits(N, C).softmax(-1)] * 2).mean(0).log(), LABELS),
    "over the batch": lambda: F.cross_entropy(logits(N, C).softmax(0), LABELS),
    "sigmoid": lambda: F.cross_entropy(logits(N, C).sigmoid(), LABELS),
    "scores of some steps": lambda: F.cross_entropy(written(3, softmax=2), LABELS),
    "a residual": lambda: F.cross_entropy(logits(N, C).softmax(-1) + logits(N, C), LABELS),
    "straight through": lambda: F.cross_entropy(F.gumbel_softmax(logits(N, C), hard=True), LABELS),
    "learned temperature": lambda: F.cross_entropy(logits(N, C).softmax(-1) / nn.Parameter(torch.ones(1)), LABELS),
    "mixture": lambda: F.cross_entropy((logits(N, C).softmax(-1)[..., None] * logits(N, C, C)).sum(1), LABELS),
    "log_softmax twice": lambda: F.cross_entropy(F.log_softmax(logits(N, C), -1), LABELS),
    "kl": lambda: F.kl_div(F.log_softmax(logits(N, C), -1), logits(N, C).softmax(-1), reduction="batchmean"),
}


@pytest.mark.parametrize("name", DOUBLE)
def test_a_softmax_under_a_log_softmax(name):
    (found,) = patterns_of(DOUBLE[name]())
    assert found.name == SOFTMAX
    assert found.nodes[0] == "LogSoftmaxBackward0"
    assert found.nodes[-1] == "SoftmaxBackward0"
    assert found.shapes == ((C,),)


@pytest.mark.parametrize("name", SINGLE)
def test_no_softmax_under_a_log_softmax(name):
    assert [found for found in patterns_of(SINGLE[name]()) if found.name == SOFTMAX] == []


def test_attention_weights_as_scores_over_another_axis():
    weights = logits(2, 7, 3).softmax(-1)  # sums to one over 3 heads
    loss = F.cross_entropy(weights.permute(0, 2, 1).reshape(-1, 7), torch.arange(6))
    assert patterns_of(loss) == ()


def test_softmax_layers_in_a_graph_are_counted():
    attention = logits(N, C).softmax(-1) * logits(N, C)
    (found,) = patterns_of(F.cross_entropy(nn.Linear(C, C)(attention).softmax(-1), LABELS))
    assert found.rivals == 2


COLUMN, ROW = (N, 1), (N,)


def prediction(*shape):
    """What a layer made."""
    if len(shape) == 1:
        return prediction(*shape, 1).squeeze(1)
    return nn.Linear(3, shape[-1])(torch.randn(*shape[:-1], 3))


PAIR_LOSSES = [F.l1_loss, F.mse_loss, F.smooth_l1_loss, F.huber_loss]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", PAIR_LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_column_against_a_row(loss, reduction):
    (found,) = patterns_of(loss(prediction(N, 1), torch.randn(N), reduction=reduction), y=ROW)
    assert (found.name, found.shapes) == (STRETCHED, ((N, N), COLUMN, ROW))


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", PAIR_LOSSES, ids=lambda loss: loss.__name__)
def test_a_row_against_a_column(loss):
    (found,) = patterns_of(loss(prediction(N), torch.randn(N, 1)), y=COLUMN)
    assert found.shapes == ((N, N), ROW, COLUMN)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_both_sides_with_history():
    (found,) = patterns_of(F.mse_loss(prediction(N, 1), prediction(N)))
    assert found.shapes == ((N, N), COLUMN, ROW)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((N, 1), (N, 1)),
        ((N,), (N,)),
        ((N, C), (N, C)),
        ((N, N), (N, N)),
        ((1, 1), (1,)),
        ((N, C), (C,)),
        ((N, C), (N, 1)),
        ((N, C), (1,)),
        ((2, N, 1), (2, N, 1)),
    ],
)
def test_pairs_that_are_no_mistake(ours, theirs):
    assert patterns_of(F.mse_loss(prediction(*ours), torch.randn(theirs)), y=(N,), column=(N, 1)) == ()


BY_HAND = {
    "square": lambda p, y: ((p - y) ** 2).mean(),
    "pow": lambda p, y: (p - y).pow(2).mean(),
    "abs": lambda p, y: (p - y).abs().mean(),
    "sum": lambda p, y: (p - y).square().sum(),
    "other way round": lambda p, y: ((y - p) ** 2).mean(),
    "root": lambda p, y: ((p - y) ** 2).mean().sqrt(),
    "half": lambda p, y: 0.5 * ((p - y) ** 2).mean(),
    "half inside": lambda p, y: (0.5 * (p - y) ** 2).mean(),
    "weighted": lambda p, y: (torch.ones(N) * (p - y) ** 2).mean(),
    "log cosh": lambda p, y: (p - y).cosh().log().mean(),
    "pinball": lambda p, y: torch.max(0.9 * (y - p), -0.1 * (y - p)).mean(),
    "both axes": lambda p, y: ((p - y) ** 2).mean((0, 1)),
    "norm": lambda p, y: torch.linalg.vector_norm(p - y),
    "relative": lambda p, y: ((y - p) / y).abs().mean() * 100,
}


UNTOLD = ("log cosh", "pinball", "norm", "relative")


@pytest.mark.parametrize("name", [pytest.param(one, marks=needs_shapes) if one in UNTOLD else one for one in BY_HAND])
def test_a_difference_by_hand(name):
    (found,) = patterns_of(BY_HAND[name](prediction(N, 1), torch.randn(N)), y=(N,))
    assert (found.name, found.shapes, found.operands) == (STRETCHED, ((N, N), COLUMN, ROW), ("y",))


@needs_shapes
def test_a_difference_of_two_with_history():
    (found,) = patterns_of(((prediction(N, 1) - prediction(N)) ** 2).mean())
    assert found.shapes == ((N, N), COLUMN, ROW)


def spread(s):
    return ((s - s.squeeze(1)) ** 2).mean()


# Each makes its loss when the test runs.
NO_MISTAKE = {
    "equal shapes": lambda: ((prediction(N, 1) - torch.randn(N, 1)) ** 2).mean(),
    "pairs on purpose": lambda: ((prediction(N).unsqueeze(1) - prediction(N).unsqueeze(0)) ** 2).mean(),
    "pairs with None": lambda: ((prediction(N)[:, None] - prediction(N)[None, :]) ** 2).mean(),
    "one unsqueezed": lambda: ((prediction(N).unsqueeze(1) - torch.randn(N)) ** 2).mean(),
    "table": lambda: ((prediction(N, 1) - prediction(1, N)) ** 2).mean(),
    "a table of its own": lambda: ((prediction(N, N) - torch.randn(N, N)) ** 2).mean(),
    "mean taken off": lambda: ((prediction(N, N) - torch.randn(N)) ** 2).mean(),
    "column mean taken off": lambda: ((prediction(N, N) - torch.randn(N, 1)) ** 2).mean(),
    "distance": lambda: torch.cdist(prediction(N, 2), torch.randn(N, 2)).mean(),
    "one row": lambda: ((prediction(1, 1) - torch.randn(1)) ** 2).mean(),
    "mean of a prediction": lambda: prediction(N, N).mean(),
    "a view as a column": lambda: ((prediction(N).view(-1, 1) - torch.randn(N)) ** 2).mean(),
    "centres": lambda: (torch.randn(N, 1) - nn.Parameter(torch.randn(N))).abs().mean(),
    "inputs": lambda: ((torch.randn(N, 1).requires_grad_() * 2 - torch.randn(N)) ** 2).mean(),
    "kernel": lambda: (-((prediction(N, 1) - torch.randn(N)) ** 2)).exp().mean(),
    "per sample": lambda: ((prediction(N, 1) - torch.randn(N)) ** 2).mean(1).log().mean(),
    "expanded": lambda: ((prediction(N, 1).expand(N, N) - torch.randn(N, N)) ** 2).mean(1).mean(),
    "quantiles": lambda: F.smooth_l1_loss(*torch.broadcast_tensors(prediction(N).view(-1, 1), torch.randn(N))),
    "quantiles of one sample": lambda: ((torch.randn(N, 1) - nn.Linear(3, N)(torch.randn(3))) ** 2).mean(),
    "spread": lambda: spread(prediction(N, 1)),
    "centroids": lambda: ((prediction(N, 1, 2) - torch.randn(N, 2)) ** 2).sum(-1).mean(),
}


@pytest.mark.parametrize("name", NO_MISTAKE)
def test_a_difference_that_is_no_mistake(name):
    assert patterns_of(NO_MISTAKE[name](), y=(N,), column=(N, 1), table=(N, N)) == ()


def test_a_product_is_asked_about_as_a_poisson_loss_only():
    asked: list[Any] = []
    walk = GraphReader().walk([(prediction(N, 1) * torch.randn(N)).tanh().mean().grad_fn], float("inf"))
    assert walk is not None
    assert find_patterns(walk, asked.append) == ()
    assert [stretch.operation for stretch in asked] == ["poisson_nll_loss"]


def test_no_name_no_finding():
    assert patterns_of(((prediction(N, 1) - torch.randn(N)) ** 2).mean()) == ()


def test_a_pattern_is_told_once():
    scores = logits(N, C).softmax(-1)
    loss = F.cross_entropy(scores, LABELS) + F.cross_entropy(scores, LABELS)
    assert len(patterns_of(loss)) == 1


@needs_shapes
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_what_is_behind_many_losses_of_one_row_is_looked_at_within_a_bound(monkeypatch):
    looked, behind = list[int](), kindred.ancestors

    def counted(node):
        found = behind(node)
        looked.append(len(found))
        return found

    monkeypatch.setattr(folded_rows, "_NODES", 500)
    monkeypatch.setattr(folded_rows, "ancestors", counted)
    rows = [prediction(1, C)]
    for _ in range(99):
        rows.append(rows[-1].tanh())
    (found,) = patterns_of(sum(F.mse_loss(row, torch.randn(N, C)) for row in rows), y=(N, C))
    assert found.shapes == ((N, C), (1, C))
    assert 500 <= sum(looked) < 1_000
