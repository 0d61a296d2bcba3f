"""The way to the sidebar: one comm of fixed name that is registered and never opened.

Nobody opens it, because an end that does not know the other's half would complain: JupyterLab without the sidebar in
the browser's console, a kernel without the inspector in the user's output. The sidebar asks for the list of comms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import comm
from comm.base_comm import BaseComm

TARGET = "torch_inspector"
COMM_ID = "torch_inspector.feed"


class Channel(BaseComm):
    """Broadcasts messages from any thread, and takes requests.

    Args:
        kernel: ipykernel's kernel.
        asked: Gets the data of each request; it must not raise.
    """

    def __init__(self, kernel: Any, asked: Callable[[Any], None]) -> None:
        super().__init__(target_name=TARGET, comm_id=COMM_ID, primary=False)
        self._kernel = kernel
        self._asked = asked

    def register(self) -> None:
        """Is listed among the kernel's comms from now on."""
        comm.get_comm_manager().register_comm(self)

    def unregister(self) -> None:
        """Is listed no more."""
        comm.get_comm_manager().unregister_comm(self)

    # What the base class would do is not what we want, in each of these three.

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        """Sends without a parent: asked for it from a thread, some versions of ipykernel raise or name a wrong one."""
        content = {"comm_id": self.comm_id, "data": data or {}, **keys}
        self._kernel.session.send(
            self._kernel.iopub_socket,
            msg_type,
            content,
            metadata=metadata,
            parent={},
            ident=self.topic,
            buffers=buffers,
        )

    def handle_msg(self, msg: Any) -> None:
        """Hands the data on, without the `pre_execute` that the user's own callbacks would get."""
        self._asked(msg["content"]["data"])

    def close(self, data: Any = None, metadata: Any = None, buffers: Any = None, deleting: bool = False) -> None:
        """Sends nothing, also in a forked child that collects its copy."""
        del data, metadata, buffers, deleting
        self._closed = True
