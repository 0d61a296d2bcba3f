"""The norm of all gradients is added up with one read per parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_WORDS = ("norm", ".grad", "parameters(")
_SQUARES = ("** 2", ".pow(2)", ".square()", "** norm_type")
_LOOPS = (ast.For, ast.AsyncFor)
_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp)


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds loops over parameters that add up norms of gradients as plain numbers."""
    code = run.cell.code
    if not all(word in code for word in _WORDS) or not (".item(" in code or "float(" in code):
        return
    tree = syntax.parse(code)
    if tree is None:
        return
    for node in syntax.walk(tree):
        line = _adding_line(node)
        if line is not None:
            yield _finding(run, line, _at_once(node))


def _adding_line(node: ast.AST) -> int | None:
    """Line where a loop or a sum over `parameters()` adds a number read from a gradient; None if it does not."""
    if isinstance(node, _LOOPS) and "parameters(" in ast.unparse(node.iter) and _is_norm(node):
        adds = (
            n
            for n in syntax.walk(node)
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and _reads(n.value)
        )
        return next((n.lineno for n in adds), None)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "sum" and node.args:
        given = node.args[0]
        if isinstance(given, _COMPREHENSIONS) and "parameters(" in ast.unparse(given) and _is_norm(given):
            return given.elt.lineno if _reads(given.elt) else None
    return None


def _at_once(node: ast.AST) -> str:
    """The same number read once: the norm of all where squares are added up, else the sum of the norms."""
    source = node.iter if isinstance(node, _LOOPS) else node.args[0].generators[0].iter  # type: ignore[attr-defined]
    text, added = ast.unparse(source).replace("named_parameters(", "parameters("), ast.unparse(node)
    source = text if text.endswith("parameters()") else "model.parameters()"
    squares = any(word in added for word in _SQUARES)
    one, call = ("p.grad", "torch.nn.utils.get_total_norm") if squares else ("p.grad.norm()", "sum")
    return f"norm = {call}([{one} for p in {source} if p.grad is not None]).item()"


def _is_norm(node: ast.AST) -> bool:
    text = ast.unparse(node)
    return ".grad" in text and "norm" in text


def _reads(node: ast.AST) -> bool:
    text = ast.unparse(node)
    return ".item()" in text or "float(" in text


def _finding(run: Run, line: int, fix: str) -> Finding:
    modules = [module for module in run.after.modules if module.path and module.parameter_names]
    devices = sorted({device for module in modules for device in module.devices if not device.startswith("cpu")})
    waits = f" and waits for {devices[0]}" if devices else ", and on a device waits for it"
    return Finding(
        message=f"this loop reads one number per parameter for the norm of all gradients{waits} each time.",
        subject="norm",
        fix=fix,
        line=line + run.cell.line_offset,
        severity="warning" if devices else "hint",
        evidence=tuple(
            Evidence(f"parameters of {module.path}", len(module.parameter_names), "count") for module in modules[:3]
        ),
    )
