"""Replies in the ledger of the index, which a tuning need not pay for again."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from graphrag_evaluation.tuning.prompt_trial import TUNE_STEP
from graphrag_index.llm.batch import BatchChatModel
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.ledger import DONE, FILE, Ledger, LedgerEntry
from graphrag_index.llm.request import Outcome, Request, request_key
from graphrag_index.pipeline.counting_models import PastReplies


class ReusingModel:
    """A chat model that first copies replies from the ledger of the index into its own ledger.

    A tuning has a ledger of its own, so that failed requests of a tuning are not those of a run.
    `advance` is called for each outcome.
    """

    def __init__(
        self,
        model: ChatModel | BatchChatModel,
        output: Path,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self.model, self.output, self.advance = model, output, advance

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Send the requests that neither ledger answers; yield outcomes in order."""
        with ExitStack() as stack:
            if (self.output / FILE).exists():
                earlier = stack.enter_context(closing(Ledger(self.output, read_only=True)))
                requests = self._copy_replies(requests, earlier)
            for outcome in self.model.replies(requests):
                self.advance()
                yield outcome

    def _copy_replies(self, requests: Iterable[Request], earlier: Ledger) -> Iterator[Request]:
        own, name = self.model.ledger, self.model.name
        for request in requests:
            key = request_key(request, self.model.settings)
            entry = earlier.find_entry(key) if own.find_entry(key) is None else None
            if entry is not None and entry.state == DONE:
                own.record_sent(key, TUNE_STEP, request.unit, name)
                own.record_replies({key: entry.reply}, entry.reason)
            yield request


class KnownReplies(PastReplies):
    """The ledger of a tuning, and behind it that of the index, for an estimate."""

    def __init__(self, folder: Path, output: Path) -> None:
        super().__init__(folder)
        self._of_index = PastReplies(output)

    def find_entry(self, key: str) -> LedgerEntry | None:
        entry = super().find_entry(key) or self._of_index.find_entry(key)
        return entry if entry is not None and entry.state == DONE else super().find_entry(key)

    def close(self) -> None:
        self._of_index.close()
        super().close()
