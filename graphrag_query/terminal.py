"""Output of the command line: rendered Markdown in a terminal, plain text in a pipe."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from graphrag_index.errors import format_count, let_ctrl_c_end_waits, print_lines
from graphrag_query.answer import Answer
from graphrag_query.answering.written_answer import AnswerStream

_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*?(?=\S|[ \t]+\S)")
_CODE_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
# The start of a line that continues a block, even if only a part of the line has been received.
_CONTINUES_BLOCK = re.compile(r"[ \t]|[-*+](?:[ \t]|\Z)|\d{1,9}(?:[.)](?:[ \t]|\Z)|\Z)|\Z")


def print_answer(answer: Answer, shown_already: bool = False) -> None:
    """Print an answer with its citations, notes and summary."""
    if not shown_already:
        _print_text(answer.text)
    if answer.citations:
        print()
    for citation in answer.citations:
        print_lines(f"[{citation.number}] {citation.source}", indent=4)
    print()
    for note in answer.notes:
        print_lines(f"Note: {note}")
    if answer.suggestion is not None:
        print_lines(str(answer.suggestion))
    print_lines(summarize_answer(answer))
    if answer.follow_ups:
        print("\nTo ask next:")
        for question in answer.follow_ups:
            print_lines(f"  {question}", indent=2)


def summarize_answer(answer: Answer) -> str:
    """Return one line with the outcome, the number of rows that were read, and the cost."""
    outcome = f"{answer.outcome}{answer.source_count}"
    looked = answer.counts_of_rows
    parts = [f"{outcome}: looked at {looked}" if looked else outcome]
    usage = answer.usage
    if usage.calls:
        tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
        price = "price not known" if usage.cost is None else f"${usage.cost:.4f}"
        parts.append(f"{format_count('calls', usage.calls)}, {tokens}, {price}")
    parts.append(f"in {usage.seconds:.1f} s.")
    return ", ".join(parts)


def print_stream(stream: AnswerStream) -> Answer:
    """Print a text while a model writes it; in a terminal, print whole Markdown paragraphs."""
    if not sys.stdout.isatty():
        for piece in stream:
            print(piece, end="", flush=True)
        print()
        return stream.answer
    for n, paragraph in enumerate(split_paragraphs(stream)):
        if n:
            print()
        _print_text(paragraph)
    return stream.answer


def split_paragraphs(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs of a Markdown text; code blocks, lists and tables are not split."""
    pending = ""
    for piece in pieces:
        pending += piece
        end = 0
        for blank in _BLANK_LINES.finditer(pending):
            before, behind = pending[end : blank.start()], pending[blank.end() :]
            is_code = len(_CODE_FENCE.findall(before)) % 2
            # An indented line or a list item belongs to the block before it.
            if not is_code and behind and not _CONTINUES_BLOCK.match(behind):
                if before.strip():
                    yield before.strip("\n")
                end = blank.end()
        pending = pending[end:]
    if pending.strip():
        yield pending.strip("\n")


def print_rewritten(question: str, answer: Answer) -> None:
    """Print the rewritten question of a conversation if it differs from the question."""
    if answer.question.strip() != question.strip():
        print(f"Understood as: {answer.question}\n")


@contextmanager
def show_status() -> Iterator[None]:
    """Show in the terminal that a question is being asked, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("Looking ..."):
        yield


def converse(ask: Callable[[str], Answer]) -> None:
    """Read questions and print answers until the input ends."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print("Ask; an empty line ends the conversation.")
    while True:
        let_ctrl_c_end_waits()
        try:
            question = input("\n> " if is_terminal else "")
        except EOFError:
            return
        if not question.strip():
            if is_terminal:
                return
            continue
        print_rewritten(question, answer := ask(question))
        print_answer(answer)


def _print_text(text: str) -> None:
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
