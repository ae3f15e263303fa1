"""The service: what answers, who works, who may, and what is counted."""

from __future__ import annotations

import gc
from typing import Any

from polytopic.errors import PolytopicError
from polytopic.server.bodies import Bodies
from polytopic.server.live import Live
from polytopic.server.metrics import Metrics
from polytopic.server.tokens import Guard
from polytopic.server.work import Workers


class Service:
    """All that the routes share.

    Parameters
    ----------
    live : Live
        What answers.
    guard : Guard
        Who may do what.
    workers : Workers
        Who answers.
    bodies : Bodies
        Where bytes of requests are counted.

    Attributes
    ----------
    writers : Workers
        Who changes the store: one, since changes wait for each other, and answers need not.
    """

    def __init__(self, live: Live, guard: Guard, workers: Workers, bodies: Bodies):
        self.live, self.guard, self.workers, self.bodies = live, guard, workers, bodies
        self.writers = Workers(1, workers.limit)
        self.metrics = Metrics(self)

    def start(self) -> None:
        """Get ready to answer, at full speed from the first request on."""
        self.live.start()
        gc.freeze()  # what stays need not be looked through again and again, which takes long
        gc.enable()

    async def change(self, action: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Change the store; return the receipt."""
        store = self.live.store
        if store is None:
            raise PolytopicError("a model file cannot learn or forget; serve a store for that.")
        receipt = await self.writers.run(lambda: getattr(store, action)(*arguments, **options))
        self.live.wake()
        self.metrics.changed(action)
        return receipt.to_dict()

    def close(self) -> None:
        """Finish what is being done, and close the store."""
        self.writers.close()
        self.workers.close()
        self.live.close()
