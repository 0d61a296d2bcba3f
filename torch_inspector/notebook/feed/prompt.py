"""Leaves a running cell as it was after a subshell has answered a request beside it."""

from __future__ import annotations

import threading
from typing import Any

from torch_inspector.failures import Failures


class Prompt:
    """Knows which request the running cell came with.

    A request that a subshell answers ends with the status "idle", which front ends take for the end of the cell (issue
    10701 of jupyterlab). And ipykernel takes the latest request of any thread for the one that threads without a
    request belong to: what the cell's own threads print would go nowhere.

    Args:
        kernel: ipykernel's kernel.
        failures: Counts what goes wrong.
    """

    def __init__(self, kernel: Any, failures: Failures) -> None:
        self._kernel = kernel
        self._failures = failures
        self._lock = threading.Lock()
        self._request: tuple[Any, Any] | None = None

    def begin(self, _info: Any = None) -> None:
        """A cell begins."""
        with self._failures.guard("prompt", interrupts=True):
            if _is_main():
                self._request = self._kernel._parent_ident["shell"], self._kernel.get_parent("shell")

    def end(self, _result: Any = None) -> None:
        """It has ended, or one that was nested in it: what is not known is not repaired."""
        if _is_main():
            with self._lock:
                self._request = None

    def repair_soon(self) -> None:
        """Called while a request is handled: as soon as this thread has said that it is idle, all is as before."""
        if not _is_main():
            # 15 ms of `%load_ext` in a terminal; a kernel with subshells has imported it.
            from asyncio import get_running_loop

            get_running_loop().call_soon(self._repair)

    def _repair(self) -> None:
        # A cell that ends in this moment waits for the lock, and "idle" is the last that is heard of it.
        with self._failures.guard("prompt"), self._lock:
            if self._request is None:
                return
            ident, parent = self._request
            self._kernel.set_parent(ident, parent)
            content = {"execution_state": "busy"}
            self._kernel.session.send(self._kernel.iopub_socket, "status", content, parent=parent, ident=b"status")


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
