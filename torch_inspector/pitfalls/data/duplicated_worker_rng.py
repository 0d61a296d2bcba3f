"""A generator of random numbers that each worker copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import GeneratorFact, LoaderFact, Run, looped_over, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One worker repeats nothing within an epoch.
_WORKERS = 2
# A longer statement is no help in a correction.
_LONGEST = 200
_MAKING = (ast.Assign, ast.AnnAssign, ast.Return)
# No worker_init_fn reaches what puts batches together; made anew in each call, it would repeat itself.
_IN_EACH_WORKER = 'if getattr(self, "seeded_with", None) != torch.initial_seed():  # first in the method that draws\n'
_PREPARE = "def prepare(worker):  # worker_init_fn=prepare\n"
# Generators that each worker makes of the seed that torch gives it.
_MADE = {
    "random.Random": "random.Random(torch.initial_seed())",
    "torch.Generator": "torch.Generator().manual_seed(torch.initial_seed())",
    "numpy.random.Generator": "np.random.default_rng(torch.initial_seed())",
    "numpy.random.RandomState": "np.random.RandomState(torch.initial_seed() % 2**32)",
}


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds loaders whose workers, several of them, draw from a generator that each has a copy of."""
    said: set[tuple[str, str]] = set()
    for loader in run.trace.loaders:
        for generator in loader.generators:
            if loader.worker_count >= _WORKERS and (generator.owner, generator.path) not in said:
                said.add((generator.owner, generator.path))
                yield _of_seed(run, loader, generator) if generator.seeded_by else _finding(loader, generator)


def _finding(loader: LoaderFact, generator: GeneratorFact) -> Finding:
    own = "" if generator.is_global else "self."
    name = generator.path if generator.is_global else generator.path.rpartition(".")[2]
    return Finding(
        message=(
            f"`{generator.owner}` draws from `{own}{name}` ({generator.kind}), and each of the {loader.worker_count} "
            "workers has a copy in the same state: they draw the same numbers."
        ),
        subject=name,
        fix=_fix(generator),
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(
            Evidence("generator", f"{name if generator.is_global else f'{generator.owner}.{name}'}: {generator.kind}"),
            Evidence("workers", loader.worker_count, "count"),
            Evidence("batches", loader.batch_count, "count"),
        ),
    )


def _of_seed(run: Run, loader: LoaderFact, generator: GeneratorFact) -> Finding:
    """Of workers that a function of the user's makes alike: torch itself gives each a seed of its own."""
    return Finding(
        message=(
            f"`worker_init_fn={generator.seeded_by}` gives each of the {loader.worker_count} workers the same seed for "
            f"`{generator.kind}`, from which `{generator.owner}` draws: they draw the same numbers."
        ),
        subject=generator.seeded_by,
        fix=_unprepared(run, loader, generator.seeded_by),
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(
            Evidence("seeded alike", generator.kind),
            Evidence("workers", loader.worker_count, "count"),
            Evidence("batches", loader.batch_count, "count"),
        ),
    )


def _unprepared(run: Run, loader: LoaderFact, function: str) -> str:
    """The statement that makes the loader, without the function: workers that stay have called it already."""
    name = looped_over(run, loader.place)
    cells = {past.cell.number: syntax.parse(run.source_of(past.cell.number)) for past in (*run.earlier, run)}
    here = [one for one in _loops(cells.get(loader.place.cell)) if one.lineno == loader.place.line]
    everywhere = [node for tree in cells.values() if tree is not None for node in syntax.walk(tree)]
    made = [text for node in everywhere if isinstance(node, _MAKING) and (text := _without(node, function))]
    own = [text for one in here if (text := _without(one, function))] or [t for t in made if t.startswith(f"{name} = ")]
    only = own[-1:] or (made if len(set(made)) == 1 else [])
    fix = only[-1] if only else f"{name or 'loader'}.worker_init_fn = None"
    return f"{fix}  # torch seeds itself, random and numpy anew in each worker"


def _loops(tree: ast.Module | None) -> list[ast.For]:
    return [node for node in syntax.walk(tree) if isinstance(node, ast.For)] if tree is not None else []


def _without(statement: ast.stmt, function: str) -> str:
    """A statement that gives a loader that function, without it; of a loop its first line; empty for others."""
    if isinstance(statement, ast.For):
        statement = ast.For(statement.target, statement.iter, [ast.Pass()], [], lineno=1)
    tree = ast.parse(ast.unparse(statement))
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    given = [(call, word) for call in calls for word in call.keywords if _is_given(word, function)]
    for call, word in given:
        call.keywords.remove(word)
    text = ast.unparse(tree).partition("\n")[0]
    return text if given and len(text) <= _LONGEST else ""


def _is_given(word: ast.keyword, function: str) -> bool:
    named = isinstance(word.value, ast.Lambda) if function == "<lambda>" else ast.unparse(word.value) == function
    return word.arg == "worker_init_fn" and named


def _fix(generator: GeneratorFact) -> str:
    made, name = _MADE.get(generator.kind, "…"), generator.path.rpartition(".")[2]
    if generator.is_global and "." in generator.path:
        return _PREPARE + f"    {generator.path} = {made}"
    if generator.is_global:
        return _PREPARE + f"    global {name}\n    {name} = {made}"
    if generator.path.startswith("collate_fn."):
        return f"{_IN_EACH_WORKER}    self.seeded_with = torch.initial_seed()\n    self.{name} = {made}"
    return _PREPARE + f"    torch.utils.data.get_worker_info().dataset.{generator.path} = {made}"
