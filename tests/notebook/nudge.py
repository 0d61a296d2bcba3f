"""Wakes a kernel that has missed a request.

Since version 7 ipykernel can miss one that arrives while it sends a reply (its issue 1554, with and without our
extension): it waits until the next one comes.
"""

from __future__ import annotations

import threading
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

_EVERY_S = 2.0


class Nudge:
    """Asks a kernel who it is, again and again, until `stop`."""

    def __init__(self, manager: Any) -> None:
        # A session of its own: the manager's belongs to the test's thread.
        self._client = BlockingKernelClient()
        self._client.load_connection_info(manager.get_connection_info(session=False))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._client.shell_channel.start()
        while not self._over.wait(_EVERY_S):
            self._client.kernel_info()
        self._client.stop_channels()
