"""Forgetting what no document supports any more: `graphrag-index run --purge`."""

from collections.abc import Callable, Iterator

from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.registry import Models, Purged, purge
from graphrag_index.pipeline.run import RunResult
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.steps.generate_text_embeddings import EMBEDDED
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version

EMBEDDING_STEP = "generate_text_embeddings"


class Purge:
    """Forgets, at the end of a run, what the ledger holds that the index does not rest on.

    The steps that ask a model run in any case: what they ask is found in the ledger, and is
    what stays. `is_whole` tells whether a run has left nothing out; if it has, nothing is
    forgotten, since what rests on the missing part would have to be paid again.
    """

    def __init__(
        self,
        models: Models,
        workflow: Workflow,
        settings: Settings,
        store: TableStore,
        is_whole: Callable[[RunResult], bool],
    ) -> None:
        self._models, self._workflow, self._settings = models, workflow, settings
        self._store, self._is_whole = store, is_whole
        self.purged: Purged | None = None

    def begin(self) -> list[str]:
        """Begin to note what is asked; returns the steps that must run."""
        self._models.track_use()
        asks = {"chat_model", "embedding_model"}
        return [
            step.name
            for step in self._workflow.steps
            # Texts that have vectors are requests, whether these were asked for now or before.
            if step.name != EMBEDDING_STEP
            and asks.intersection(step.needs(getattr(self._settings, step.name, None)))
        ]

    def end(self, result: RunResult) -> None:
        """Delete the rest, while no other run can begin.

        Raises
        ------
        GraphRAGError
            A batch is open, or the ledger cannot be written or is being read.
        """
        if not self._is_whole(result):
            return
        self.purged = Purged(0, 0, 0)
        if self._models.has_ledger:
            keys = _embedded(self._settings, self._store, result.version)
            self.purged = purge(self._models.ledger, self._store.output, keys)


def _embedded(settings: Settings, store: TableStore, version: Version) -> Iterator[str]:
    """Give the keys of the texts that have vectors of a model behind an address."""
    model = settings.models.get(settings.generate_text_embeddings.model)
    if model is None:
        return
    for name, embedded in EMBEDDED.items():
        if name in version.tables:
            for text in store.scan(name, version.tables[name]).select(embedded).collect()["text"]:
                yield text_key(text, model)
