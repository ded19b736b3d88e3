"""An answer that can be read while it is being written."""

import queue
import threading
from collections.abc import Callable, Iterator

from graphrag_index.llm.request import TextSink
from graphrag_query.answer import Answer

# What stands between a text that broke off and the one that was written anew.
RESTARTED = "\n\n[The model broke off; once more from the start:]\n\n"


class AnswerStream:
    """Iterating gives the text in pieces; `answer` is the whole, and waits for it.

    The answer's own text is the one to keep: of a call that broke off, the pieces have both.
    """

    def __init__(self, ask: Callable[[TextSink], Answer]) -> None:
        self._pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def write(self, piece: str) -> None:
        """Take the next piece, from the search."""
        self._pieces.put(piece)

    def restart(self) -> None:
        """Note that the text begins anew."""
        self._pieces.put(RESTARTED)

    def __iter__(self) -> Iterator[str]:
        while (piece := self._pieces.get()) is not None:
            yield piece
        # For whoever iterates again.
        self._pieces.put(None)
        if self._error is not None:
            raise self._error

    @property
    def answer(self) -> Answer:
        """The whole answer. Raises what the search raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def _run(self, ask: Callable[[TextSink], Answer]) -> None:
        try:
            self._answer = ask(self)
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is read
            self._error = error
        finally:
            self._pieces.put(None)


class Counted:
    """A sink that knows whether anything was written into it, since its last restart."""

    def __init__(self, sink: TextSink) -> None:
        self._sink, self.is_empty = sink, True

    def write(self, piece: str) -> None:
        """Pass a piece on."""
        self.is_empty = False
        self._sink.write(piece)

    def restart(self) -> None:
        """Pass it on."""
        self.is_empty = True
        self._sink.restart()
