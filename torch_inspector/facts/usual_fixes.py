"""What usually keeps an operation finite, where the texts do not tell how it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_inspector.facts.half_floors import in_half
from torch_inspector.facts.values import NO_ROOM

if TYPE_CHECKING:
    from torch_inspector.facts.values import OperationFact

# By operation.
_FIXES = {
    "log": "….clamp_min(1e-12).log(), or F.log_softmax and F.logsigmoid of the scores themselves",
    "log2": "….clamp_min(1e-12).log2()",
    "log10": "….clamp_min(1e-12).log10()",
    "log1p": "keep the operand above -1: ….clamp_min(0).log1p() of what cannot be negative, as a count or a price",
    "/": "keep the divisor away from zero: total / count.clamp_min(1)",
    "/ norm": "F.normalize(v, dim=-1), which leaves a row of zeros as it is; or v / v.norm(…).clamp_min(1e-8)",
    "1 /": "keep the divisor away from zero: 1 / ….clamp_min(1e-12)",
    "rsqrt": "keep the operand above zero: (… + 1e-12).rsqrt()",
    "**": "keep the base above zero, where the exponent is a fraction or negative: ….clamp_min(1e-6).pow(p)",
    "acos": "keep the operand inside of -1 to 1: ….clamp(-1 + 1e-6, 1 - 1e-6).acos()",
    "asin": "keep the operand inside of -1 to 1: ….clamp(-1 + 1e-6, 1 - 1e-6).asin()",
    "atanh": "keep the operand inside of -1 to 1: ….clamp(-1 + 1e-6, 1 - 1e-6).atanh()",
    "sqrt": "keep the operand above zero: ….clamp_min(1e-12).sqrt()",
    "exp": "limit the exponent: ….clamp_max(10).exp(), or ….tanh().exp() where many multiply; or scale the inputs",
    "softmax": "leave one score of each row unmasked, or mask with a large negative number: -1e9",
    "ctc_loss": "zero_infinity=True in the ctc_loss; or leave out targets that are too long, blanks included",
    "log_softmax": "leave one score of each row unmasked, or mask with a large negative number: -1e9",
}
# The same without the operation.
_OTHERWISE = {
    "log": "or F.log_softmax, F.logsigmoid of the scores themselves",
    "exp": "or stay with logarithms: torch.logsumexp, torch.logcumsumexp",
}


def usual_fix(operation: OperationFact | None) -> str:
    """What usually helps; empty if nothing is known."""
    if operation is not None and operation.cause == NO_ROOM:
        return "multiply by less: 2.0**16 is usual; torch.amp.GradScaler goes down from there by itself"
    if operation is not None and operation.signed:
        # A lower bound would change the numbers below zero, too.
        return "leave out where it is 0, before the operation: a[b != 0] / b[b != 0]"
    return in_half(_FIXES.get(operation.name, ""), half=operation.half) if operation is not None else ""


def with_other_way(fix: str, operation: OperationFact | None) -> str:
    """A fix in the user's own names, and the way without the operation."""
    told = any(one in fix for one in ("softmax", "binary_cross_entropy", "tanh"))
    other = _OTHERWISE.get(operation.name, "") if operation is not None and not told else ""
    return f"{fix}{'; ' if '  # ' in fix else '  # '}{other}" if fix and other else fix
