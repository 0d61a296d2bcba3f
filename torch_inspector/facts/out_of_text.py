"""Whether what a module has may be read by code that the notebook does not show, or by a name that is put together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax

# All fields at once, or one whose name stands nowhere.
_ANY_NAME = re.compile(r"\bvars\(|__dict__|\bgetattr\([^,()]+,(?!\s*['\x22]\w+['\x22]\s*[,)])")
# Libraries whose functions read no fields of a module that they do not know.
_KNOWN = frozenset(
    ("torch", "torchvision", "torchaudio", "copy", "numpy", "math", "time", "tqdm", "matplotlib", "random", "os", "gc")
)


def may_be_read_elsewhere(sources: Iterable[str], model: str) -> bool:
    """True if some text reads fields by no name, or hands the model to what it has imported."""
    texts = list(sources)
    trees = [tree for text in texts if (tree := syntax.parse(text)) is not None]
    if any(_ANY_NAME.search(text) for text in texts):
        return True
    imported = {name for tree in trees for name in _imported(tree)}
    calls = [node for tree in trees for node in syntax.walk(tree) if isinstance(node, ast.Call)]
    names = {model, "self"} | _handed_as(trees, {_name(call) for call in calls if model in _given(call)})
    handed = [call for call in calls if names & set(_given(call))]
    return "*" in imported or any(ast.unparse(call.func).partition(".")[0] in imported for call in handed)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names that a text imports from libraries of all kinds."""
    for node in syntax.walk(tree):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                if (module or one.name).partition(".")[0] not in _KNOWN:
                    yield one.asname or one.name.partition(".")[0]


def _given(call: ast.Call) -> list[str]:
    """The variables that a call is given themselves."""
    given = (*call.args, *(one.value for one in call.keywords))
    return [one.id for one in given if isinstance(one, ast.Name)]


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _handed_as(trees: list[ast.Module], called: set[str]) -> set[str]:
    """What functions of these names, and constructors, call the model that they are given."""
    names = called | {"__init__"} if called else set[str]()
    nodes = (node for tree in trees for node in syntax.walk(tree))
    taking = (node.args for node in nodes if isinstance(node, syntax.FUNCTIONS) and node.name in names)
    return {one.arg for given in taking for one in (*given.args, *given.kwonlyargs)}
