"""Whether what a name stands for now is what it stood for at the line that read it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.last_given import shares_line
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.stored_later import is_stored_later
from torch_inspector.observe.written_later import is_written_later

_CALLS_DEEP = 4


class Seen(NamedTuple):
    """A name that an operand was made of, and the line that read it."""

    scope: Scope
    name: ast.expr
    line: int

    def may_be_another(self) -> bool:
        """True if a line after that one may have changed what it stands for, or what the caller gave."""
        entry = isinstance(self.name, ast.Subscript)
        # Another entry that is given a value leaves this one as it is.
        written = not entry and is_written_later(self.scope, self.name, self.line)
        return written or self._is_beside() or self._is_rebound() or is_stored_later(self.scope, self.name, self.line)

    def _is_beside(self) -> bool:
        """True for `c = c // 3; d = c * 100`: which of the values of one line was read is not known."""
        name = self.name.id if isinstance(self.name, ast.Name) else ""
        here = self.line in stores_in(self.scope.node).get(name, ())
        return here and shares_line(self.scope.node, self.line)

    def _is_rebound(self) -> bool:
        """True if a caller gave something else to a name in the call, in its own statement or later."""
        scope, names = self.scope, {one.id for one in syntax.walk(self.name) if isinstance(one, ast.Name)}
        for _ in range(_CALLS_DEEP):
            caller, call = scope.caller, scope.call
            if caller is None or call is None:
                return False
            outer = names - scope.arguments.keys() - stores_in(scope.node).keys()
            given = (syntax.names_in(scope.arguments[name]) for name in names & scope.arguments.keys())
            names = (syntax.names_in(call.func) | outer).union(*given)
            if names & _given_late(caller, call):
                return True
            scope = caller
        return False


def _given_late(caller: Scope, call: ast.Call) -> set[str]:
    """Names that the statement around a call, or a later line, gives a value."""
    statement = syntax.statement_of(call, syntax.parents(caller.node))
    if statement is None:
        return set()
    last = statement.lineno if hasattr(statement, "body") else statement.end_lineno or statement.lineno
    late = {name for name, lines in stores_in(caller.node).items() if max(lines) > last}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return late.union(*(syntax.names_in(one) for one in targets))
