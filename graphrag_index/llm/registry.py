"""The models of one run: created on demand, with a shared ledger and a shared budget."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from graphrag_index.errors import GraphRAGError, ModelError, SettingsError
from graphrag_index.llm.chat_model import ChatModel, LoopThread
from graphrag_index.llm.client import LLMClient, check_server, probe_server
from graphrag_index.llm.embeddings import RemoteEmbeddingModel, RemoteReranker
from graphrag_index.llm.ledger import (
    DONE,
    FILE,
    INSERT_USED,
    Batch,
    BatchLedger,
    Ledger,
    QuarantinedRequest,
)
from graphrag_index.llm.limits import Budget, TokenLimits, price_list_date, price_of_model
from graphrag_index.llm.probe import Trial
from graphrag_index.llm.request import Spending
from graphrag_index.schema.settings.models import ModelSettings, find_model

if TYPE_CHECKING:
    from graphrag_index.llm.batch import BatchChatModel, BatchQueue

# The metadata entry of the ledger with the steps whose failed requests are sent again.
_REOPENED_STEPS = "released steps"
_IS_UNUSED = "key NOT IN (SELECT key FROM temp.used)"


class Models:
    """The models in the settings, for one run.

    `output` is the folder of the index and its ledger; with None, the ledger is in memory.
    `version` returns the version of the index that the run creates. `needed` maps the name of
    each model that the run needs to "" for a chat model, or to the step for an embedding model.
    The creation of the first model requests one vector from each needed embedding model; with
    `check`, it first checks that the servers of all needed models answer and accept the key.
    So a wrong key is found before any request is paid for. `budget` is the maximum cost of the
    run in dollars; None means no limit. With `batch`, chat models send their requests in the
    provider's batches. `announce` gets a line about each needed model before its first request.
    """

    # The queue of the batch model that was created last.
    newest_queue: "BatchQueue"
    # Whether only replies in the ledger are used; so it is with those of an estimate.
    only_known = False

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        output: Path | None = None,
        version: Callable[[], int] = lambda: 0,
        needed: Mapping[str, str] = MappingProxyType({}),
        budget: float | None = None,
        batch: bool = False,
        check: bool = True,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.settings, self.output, self.version = settings, output, version
        self.needed, self._limit, self._is_batch, self._checks = needed, budget, batch, check
        self.announce = announce
        self._forget = self._tracks_use = False
        self._ledger: Ledger | None = None
        self._loop: LoopThread | None = None
        self._budget: Budget | None = None
        self._opened: list[ChatModel | BatchChatModel | RemoteEmbeddingModel | RemoteReranker] = []

    def open_chat_model(self, name: str, step: str) -> "ChatModel | BatchChatModel":
        """Create the chat model of a step.

        Raises `ModelError` if requests of the step are in a batch, but this run does not use
        batches.
        """
        settings, loop, budget = self._open_model(name, step)
        if self._is_batch and self.output is not None:
            # Import this module only here: it imports `openai`, which is slow.
            from graphrag_index.llm.batch import BatchChatModel

            folder, forget = self.output / "batches", self._forget
            in_batches = BatchChatModel(name, settings, step, self.ledger, folder, budget, forget)
            self._opened.append(in_batches)
            self.newest_queue = in_batches.queue
            return in_batches
        batches = BatchLedger(self.ledger).open_batches(step)
        if batches:
            n = sum(batch.n_requests for batch in batches)
            ids = ", ".join(batch.id or "not yet created" for batch in batches)
            raise ModelError(
                f"{n:,} requests of {step} are in a batch ({ids}) and would be paid twice: run "
                "with --batch to collect them; a batch that you cancel at the provider is "
                "collected at once."
            )
        model = ChatModel(name, settings, step, self.ledger, loop, budget)
        self._opened.append(model)
        return model

    def open_embedding_model(self, name: str, step: str) -> RemoteEmbeddingModel:
        """Create the embedding model of a step."""
        settings, loop, budget = self._open_model(name, step)
        model = RemoteEmbeddingModel(name, settings, step, self.ledger, loop, budget)
        self._opened.append(model)
        model.find_dimension()
        return model

    def open_reranker(self, name: str, step: str) -> RemoteReranker:
        """Create the reranker of a step."""
        settings, loop, budget = self._open_model(name, step)
        model = RemoteReranker(name, settings, step, self.ledger, loop, budget)
        self._opened.append(model)
        return model

    def probe_server(self, name: str) -> tuple[list[Trial], str]:
        """Send tiny requests to the server of a needed model, and remember what works.

        Returns the trials, and a description of the model and its requests. Raises `ModelError`
        if the server does not answer, or refuses what every request needs.
        """
        embeds, loop = bool(self.needed[name]), LoopThread()
        client = LLMClient(name, self.settings[name], self.ledger)
        try:
            return loop.run_coroutine(probe_server(client, embeds)), client.writer.describe(embeds)
        finally:
            loop.run_coroutine(client.close())
            loop.close()

    def reopen_requests(self, steps: Iterable[str]) -> list[str]:
        """Reopen the quarantined requests of these steps, so that they are sent again.

        Returns all steps with reopened requests, including those that an earlier call reopened.
        """
        self._forget = True
        found = list(dict.fromkeys(row.step for row in self.quarantined_requests(steps)))
        if found:
            self.ledger.set_meta(_REOPENED_STEPS, json.dumps([*self.reopened_steps(), *found]))
            self.ledger.reopen_quarantined(found)
            # The servers may have changed, and accept longer requests now.
            for model in self.settings.values():
                TokenLimits(model, self.ledger).forget()
        return self.reopened_steps()

    def reopened_steps(self) -> list[str]:
        """Return the steps with requests reopened since the last finished run."""
        known = self.ledger.get_meta(_REOPENED_STEPS) if self.has_ledger else None
        return list(dict.fromkeys(json.loads(known))) if known else []

    def mark_finished(self) -> None:
        """Note that the run is finished, and has sent all reopened requests."""
        if self.reopened_steps():
            self.ledger.set_meta(_REOPENED_STEPS, "[]")

    def track_use(self) -> None:
        """Track the requests used from now on, so that `purge` can delete the others."""
        self._tracks_use = True
        if self._ledger is not None:
            self._ledger.track_use()

    def has_requests(self, step: str) -> bool:
        """Return whether the ledger has requests of a step."""
        query = "SELECT 1 FROM uses WHERE step = ? LIMIT 1"
        return self.has_ledger and bool(self.ledger.fetch_rows(query, step))

    def spent(self, version: int) -> Spending:
        """Return the number of calls, the tokens and the cost of a version of the index."""
        return self.ledger.spent_for(version) if self.has_ledger else Spending()

    def open_batches(self) -> list[Batch]:
        """Return the batches that are not collected yet."""
        return BatchLedger(self.ledger).open_batches() if self.has_ledger else []

    def quarantined_requests(self, steps: Iterable[str]) -> list[QuarantinedRequest]:
        """Return the quarantined requests of these steps."""
        return self.ledger.quarantined_requests(steps) if self.has_ledger else []

    def quarantined_share(self, step: str) -> float:
        """Return the share (0 to 1) of quarantined requests among the finished ones of a step."""
        if not self.has_ledger:
            return 0.0
        rows = [row for row in self.ledger.step_statuses() if row.step == step]
        failed = sum(row.quarantined for row in rows)
        return failed / max(1, failed + sum(row.done for row in rows))

    @property
    def ledger(self) -> Ledger:
        """The ledger of the output folder. It is opened at its first use."""
        if self._ledger is None:
            self._ledger = Ledger(self.output, self.version())
            if self._tracks_use:
                self._ledger.track_use()
        return self._ledger

    def close(self) -> None:
        """Close the connections, the event loop and the ledger."""
        if self._loop is not None:
            for model in self._opened:
                model.close()
            self._loop.close()
        if self._ledger is not None:
            self._ledger.close()
        self._opened, self._loop, self._ledger = [], None, None

    def close_with(self, owner: object) -> None:
        """Close the connections and the event loop as soon as nothing refers to `owner` any more.

        A server that switches to a new version of an index drops the version before.
        """
        # Closing waits for the event loop, in whose thread the owner may have been deleted.
        end = finalize(owner, lambda: threading.Thread(target=self.close, daemon=True).start())
        end.atexit = False

    @property
    def has_ledger(self) -> bool:
        """Whether a ledger exists: a model was used for this output folder."""
        folder = self.output
        return self._ledger is not None or (folder is not None and (folder / FILE).exists())

    def _open_model(self, name: str, step: str) -> tuple[ModelSettings, LoopThread, Budget]:
        """Return the settings of a model, the event loop and the budget.

        The first call creates the loop and the budget, and checks the models in `needed`.
        """
        settings = find_model(self.settings, name, step)
        if self._loop is None or self._budget is None:
            names = dict.fromkeys((*self.needed, name))
            # A budget needs the price of every model.
            for needed in names if self._limit is not None else ():
                known = self.settings.get(needed)
                if known is not None and price_of_model(known) is None:
                    raise SettingsError(
                        f"A budget needs all prices: the price of {known.model!r}, model {needed}, "
                        f"is not in the list of {price_list_date()}; set `price` of this model "
                        "(0 if the model costs nothing)."
                    )
            self._loop = LoopThread()
            self._budget = Budget(self._limit, self.ledger.spent_so_far())
            self._budget.held_for_batches = sum(batch.max_cost for batch in self.open_batches())
            for needed in names if self._checks else ():
                client = LLMClient(needed, find_model(self.settings, needed, step), self.ledger)
                self.announce(client.writer.describe(embeds=bool(self.needed.get(needed))))
                try:
                    self._loop.run_coroutine(check_server(client))
                finally:
                    self._loop.run_coroutine(client.close())
            for needed, embedding_step in self.needed.items():
                if embedding_step:
                    self.open_embedding_model(needed, embedding_step)
        return settings, self._loop, self._budget


class PurgeCounts(NamedTuple):
    """Counts of a purge of the ledger."""

    n_deleted: int  # deleted requests
    n_kept: int  # remaining requests
    n_bytes: int  # by which the file became smaller


def purge_ledger(ledger: Ledger, output: Path, keys: Iterable[str] = ()) -> PurgeCounts:
    """Delete all requests except those used since `Ledger.track_use` and those in `keys`.

    The costs of deleted requests are kept, without the keys of the requests. If a batch is open
    or the file cannot be written, raises `GraphRAGError` and deletes nothing. If another program
    is reading the file, deletes the requests and raises `GraphRAGError`, because the file still
    contains the deleted bytes.
    """
    for batch in BatchLedger(ledger).open_batches():
        raise GraphRAGError(
            f"Nothing was purged: batch {batch.id or 'of ' + batch.step} ({batch.step}) is not "
            "collected yet, and its replies cost money: run with --batch until the batch is "
            "collected. To collect the batch at once, first cancel it at the provider."
        )
    path = output / FILE
    before = path.stat().st_size
    with ledger.transaction() as database:
        database.executemany(INSERT_USED, ((key,) for key in keys))
        n_deleted = database.execute(f"DELETE FROM requests WHERE {_IS_UNUSED}").rowcount
        # Clear labels: a label may name a deleted document that had the same text as another.
        database.execute("UPDATE requests SET unit = '' WHERE state = ?", (DONE,))
        database.execute(f"DELETE FROM uses WHERE {_IS_UNUSED}")
        database.execute(f"UPDATE calls SET key = '' WHERE {_IS_UNUSED}")
        database.execute(f"DELETE FROM batch_replies WHERE {_IS_UNUSED}")
        database.execute("DELETE FROM batch_requests")
        database.execute("DELETE FROM batches")
    n_kept = ledger.fetch_rows("SELECT count(*) FROM requests")[0][0]
    for leftover in (output / "batches").glob("*"):
        leftover.unlink()
    if not ledger.compact_file():
        raise GraphRAGError(
            f"{path} is being read by another program, so that the file still contains the "
            "deleted data: end that program and run with --purge again."
        )
    return PurgeCounts(n_deleted, n_kept, max(0, before - path.stat().st_size))
