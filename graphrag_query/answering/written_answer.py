"""Let a model write an answer from a context, and check what it cites."""

from collections.abc import Mapping
from typing import Any

from graphrag_index.text.citations import Shown
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.chat import Chat, Written
from graphrag_query.answering.cited_text import CitedText
from graphrag_query.answering.context import Context
from graphrag_query.question.question import Question

NOTHING_READ = "The index holds nothing about this question."
CUT_OFF = "The model was cut off before its end: raise max_output_tokens of this model."
# Quotations that notes give word by word; of more, how many there are.
MOST_NOT_FOUND = 3
NO_RECORD_TEXT = "The documents that were read hold no record of this."


def write_answer(
    question: Question,
    prompt: str,
    context: Context,
    *,
    method: str,
    parameters: Mapping[str, Any],
    looked_at: Mapping[str, int],
    notes: tuple[str, ...] = (),
    shown: Shown | None = None,
) -> Answer:
    """Ask the question's chat model to answer from a context, by the named prompt.

    `shown` are the rows that may be cited, if not all of the context may.

    The outcome is `no_evidence` if the context is empty, for which nothing is asked, or if
    the model says that it holds no answer.

    Raises
    ------
    ModelError
        The model gave no answer.
    """
    chat = question.chat
    assert chat is not None
    if context.is_empty:
        return question.answer(
            NOTHING_READ, method, parameters, looked_at, Outcome.NO_EVIDENCE, context=context
        )
    question.counts.update(looked_at)
    citable = context.shown if shown is None else shown
    cited = CitedText(question.model, citable, question.search.citations)
    text, is_cut_off = _write(question, chat, prompt, context, cited)
    if is_cut_off:
        notes = (*notes, CUT_OFF)
    return question.answer(
        text or NO_RECORD_TEXT,
        method,
        parameters,
        looked_at,
        Outcome.NO_EVIDENCE if cited.has_no_record or not text else Outcome.ANSWERED,
        # What tells that there is no record may cite what comes near.
        citations=tuple(cited.citations),
        notes=(*notes, *(notes_on(cited) if citable else ())),
        context=context,
    )


def notes_on(cited: CitedText) -> tuple[str, ...]:
    """Tell what was found wrong with the citations of a text."""
    notes = []
    if cited.n_removed:
        what = "citation" if cited.n_removed == 1 else "citations"
        notes.append(f"{cited.n_removed} {what} of rows that the model was not shown removed.")
    if cited.has_begun and not (cited.citations or cited.has_no_record):
        notes.append("The model cites no passage for this.")
    not_found = list(dict.fromkeys(cited.not_found))
    listed = not_found if len(not_found) <= MOST_NOT_FOUND + 1 else not_found[:MOST_NOT_FOUND]
    notes += [f"Not in the passage cited: “{quotation}”." for quotation in listed]
    if len(listed) < len(not_found):
        more = len(not_found) - len(listed)
        notes.append(f"{more} more quotations are not in the passages cited for them.")
    return tuple(notes)


def _write(
    question: Question, chat: Chat, prompt: str, context: Context, cited: CitedText
) -> Written:
    """Ask, and put the text through the check while it is being written."""
    asked = f"{context.text}\nQuestion: {question.text}"
    messages = chat.messages(prompt, asked, response=question.search.response)
    sink = CheckedSink(question, cited) if question.sink else None
    written = chat.write(question.text, messages, sink)
    if sink is None:
        return Written(cited.feed(written.text, is_last=True).strip(), written.is_cut_off)
    return Written(sink.end(written.text).strip(), written.is_cut_off)


class CheckedSink:
    """Checks a text while it is being written, and passes on what is certain."""

    def __init__(self, question: Question, cited: CitedText) -> None:
        assert question.sink is not None
        self._sink, self._cited = question.sink, cited
        self._parts: list[str] = []

    def write(self, piece: str) -> None:
        """Take the next piece."""
        self._pass_on(self._cited.feed(piece))

    def restart(self) -> None:
        """Forget what was written."""
        self._cited.restart()
        if self._parts:
            self._sink.restart()
        self._parts.clear()

    def end(self, written: str) -> str:
        """Pass on the rest and return the whole; `written` is for a model that does not stream."""
        rest = "" if self._parts or self._cited.has_begun else written
        self._pass_on(self._cited.feed(rest, is_last=True))
        return "".join(self._parts)

    def _pass_on(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._sink.write(text)
