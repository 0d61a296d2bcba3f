"""A loss that is computed from choices, as it reads where it is computed from the scores that they are made of."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

_MEASURES = re.compile(
    r"(mse|l1|smooth_l1|huber|binary_cross_entropy\w*)(_loss)?$|(MSE|L1|Huber|BCE\w*)Loss", re.IGNORECASE
)
_CLASSES = re.compile(r"cross_entropy|CrossEntropyLoss")
_SHAPED = re.compile(r"squeeze|flatten|view|reshape|\[:, 0\]")


# Calls that make distributions, and those of them whose draws follow their parameters.
_SMOOTH = re.compile(r"\w*Normal|\w*Uniform|Laplace|Beta|Gamma|Dirichlet|Gumbel|Exponential|StudentT|Cauchy|Relaxed\w+")
_KINDS = re.compile(
    rf"\b({_SMOOTH.pattern}|\w*Categorical|Bernoulli|Binomial|Geometric|Multinomial|NegativeBinomial|Poisson)\("
)


class _Choice(NamedTuple):
    """`_, guess = scores.max(1)`."""

    name: str
    scores: str


def from_scores(run: Run, cut: CutFact) -> str:
    """The line of the loss with the scores of the classes in the place of the chosen ones; empty if it is not plain."""
    source = run.source_of(cut.place.cell)
    tree, scores = syntax.parse(source), _scores(cut.text)
    if tree is None or not scores:
        return ""
    choice = _Choice(_bound_at(tree, cut.place.line), scores)
    for call in _loss_calls(tree, cut.text, choice.name):
        made = _made(run, call, source)
        if made and (call.lineno >= (cut.place.line or 0)):
            labels = ast.unparse(_whole(call.args[1]))
            place = Place(cut.place.cell, call.lineno)
            new = f"{made}({choice.scores}, {labels})"
            return f"{in_statement(run, place, ast.unparse(call), new)}  # from the scores; the choice is for measuring"
    return ""


def _scores(text: str) -> str:
    """`scores` of `scores.argmax(1)` and `torch.max(scores, 1)[1]`, if each row is one sample."""
    node = syntax.expression(text)
    call = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    of_torch = ast.unparse(call.func.value) == "torch"
    given = call.args[1:] if of_torch else call.args
    axes = [ast.unparse(one) for one in (*given, *(one.value for one in call.keywords if one.arg == "dim"))]
    if axes not in (["1"], ["-1"]) or (of_torch and not call.args):
        return ""
    return ast.unparse(call.args[0] if of_torch else call.func.value)


def _bound_at(tree: ast.Module, line: int | None) -> str:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno == line:
            target = node.targets[0]
            last = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
            return last.id if isinstance(last, ast.Name) else ""
    return ""


def _loss_calls(tree: ast.Module, text: str, name: str) -> Iterator[ast.Call]:
    """Calls whose first argument is the choice, perhaps as floats."""
    for node in syntax.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 2:  # noqa: PLR2004
            first = ast.unparse(_whole(node.args[0]))
            if first in (text, name) or first == f"({text})":
                yield node


def _whole(node: ast.expr) -> ast.expr:
    """`labels` of `labels.float()`."""
    method = node.func if isinstance(node, ast.Call) else None
    plain = isinstance(method, ast.Attribute) and method.attr in ("float", "double")
    return method.value if plain and isinstance(method, ast.Attribute) else node


def _made(run: Run, call: ast.Call, source: str) -> str:
    """What computes a loss from scores, in the words of a call that computes one; empty for other calls."""
    name = ast.unparse(call.func)
    sources = (source, *(one.cell.source for one in reversed(run.earlier)))
    given = re.compile(rf"\b{re.escape(name)}\s*=\s*([\w.]+)\(")
    kinds = (name, *(found[1] for one in sources if (found := given.search(one))))
    kind = next((one for one in kinds if _MEASURES.search(one.removesuffix("()")) or _CLASSES.search(one)), "")
    if _CLASSES.search(kind):
        return name
    if not kind:
        return ""
    prefix = kind.rpartition(".")[0]
    if kind != name or not prefix:
        return "torch.nn.functional.cross_entropy"
    return f"{prefix}.CrossEntropyLoss()" if name.endswith("()") else f"{prefix}.cross_entropy"


def from_chances(run: Run, cut: CutFact, root: str) -> str:
    """The loss of draws by the logarithm of their chances: `-(log_prob * reward).mean()`.

    Of a loss that has a history, as that of a critic which is given the draws, the draw itself hands the gradient on.
    """
    source, drawn = run.source_of(cut.place.cell), syntax.expression(cut.text)
    tree = syntax.parse(source)
    if tree is None or not isinstance(drawn, ast.Call) or not isinstance(drawn.func, ast.Attribute):
        return _CHANCES
    if not root and (moved := _reparameterised(run, cut, drawn)):
        return moved
    name, line = _bound_at(tree, cut.place.line), source.splitlines()[(cut.place.line or 1) - 1]
    reward = next((one for one in map(_reward, _values(tree, root)) if one), "")
    flat = drawn.func.attr == "sample" or (ast.unparse(drawn).endswith(", 1)") and _SHAPED.search(line))
    if not (name and reward and flat):
        return _CHANCES
    dist = f"torch.distributions.Categorical({_chances(drawn)})"
    dist = ast.unparse(drawn.func.value) if drawn.func.attr == "sample" else dist
    return f"{root} = -({dist}.log_prob({name}) * {reward}).mean()"


def _reparameterised(run: Run, cut: CutFact, drawn: ast.Call) -> str:
    """The line with `rsample()`, for distributions that have it, as far as the text says which these are."""
    if not isinstance(drawn.func, ast.Attribute) or drawn.func.attr != "sample" or "…" in cut.text:
        return ""
    texts = (cut.text, run.source_of(cut.place.cell), "\n".join(one.cell.source for one in run.earlier))
    named = next((found for one in texts if (found := set(_KINDS.findall(one)))), set[str]())
    if not named or not all(_SMOOTH.fullmatch(one) for one in named):
        return ""
    new = f"{ast.unparse(drawn.func.value)}.rsample()"
    return f"{in_statement(run, cut.place, cut.text, new)}  # rsample() hands the gradient on, sample() does not"


_CHANCES = "-(log_prob * reward).mean(), with log_prob = torch.distributions.Categorical(chances).log_prob(drawn)"


def _chances(drawn: ast.Call) -> str:
    """`p` of `torch.multinomial(p, 1)` and `p.multinomial(1)`."""
    of_torch = isinstance(drawn.func, ast.Attribute) and ast.unparse(drawn.func.value) == "torch"
    return ast.unparse(drawn.args[0] if of_torch else drawn.func.value)  # type: ignore[attr-defined]


def _values(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            yield node.value


def _reward(node: ast.expr) -> str:
    """`r` of `-r.mean()`."""
    call = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr not in ("mean", "sum")
    ):
        return ""
    given = call.args[0] if ast.unparse(call.func.value) == "torch" and call.args else call.func.value
    return given.id if isinstance(given, ast.Name) else ""
