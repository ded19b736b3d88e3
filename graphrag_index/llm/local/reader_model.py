"""Extractive question answering by a model of the user: the span of a text that answers.

The folder holds `model.onnx` and `tokenizer.json`, as Hugging Face exports such models, and
optionally `reader.yaml`. The model scores each token of a window, which is the question and a
part of a text, as the first and as the last token of the answer. The first token of the window
stands for "no answer" (Devlin et al., BERT, NAACL 2019, section 4.3).
"""

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.onnx_model import (
    TOKENIZER_FILE,
    OnnxSession,
    batch_rows,
    check_libraries,
    open_tokenizer,
)
from graphrag_index.schema.settings.section import (
    Section,
    describe_validation_error,
    read_settings_yaml,
    read_text_file,
    setting,
)
from graphrag_nlp.text.normalize import is_unspaced, replace_surrogates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Scores = npt.NDArray[np.float32]

DESCRIPTION_FILE, GRAPH_FILE = "reader.yaml", "model.onnx"
# The outputs of an export for the task question-answering.
OUTPUTS = ("start_logits", "end_logits")
# Shares of the tokens of a window: what two windows have in common, and the question at most.
OVERLAP_SHARE = 1 / 3
QUESTION_SHARE = 1 / 4
# Maximum number of windows that are read for a question.
MAX_WINDOWS = 128
_EXPORT = "export it for the task question-answering, see docs/searches.md"
_loading = threading.Lock()


class ReaderDescription(Section):
    """The file `reader.yaml`: how a reader is used."""

    max_tokens: int = setting(
        384, "Tokens of a window: the question and a part of a text.", ge=16, le=100_000
    )
    max_answer_tokens: int = setting(30, "Longest answer in tokens.", ge=1, le=1_000)
    min_score: float = setting(
        0.0,
        "How much an answer must score above no answer, as a sum of two logits: 0 for a model "
        "that has learned to find no answer, such as one trained on SQuAD 2.",
    )
    sha256: dict[str, str] = setting({}, "Hash of each file of the model, by its name.")


class Span(NamedTuple):
    """A part of one of the texts that were read, with its score above no answer."""

    text: int
    start: int
    end: int
    score: float


class _Window(NamedTuple):
    """The tokens that the model reads at once; `may_answer` excludes those of the question."""

    text: int
    tokens: "Numbers"
    token_types: "Numbers"
    offsets: "Numbers"  # start and end of each token in the text
    may_answer: "npt.NDArray[np.bool_]"


class Reader:
    """A model that finds the span of a text which answers a question.

    Several threads may use it. Raises `ModelError` if a library is missing, or if the files are
    not those of such a model, and `SettingsError` if the description is invalid.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / DESCRIPTION_FILE
        self.description = _read_description(path)
        for name in (GRAPH_FILE, TOKENIZER_FILE, *self.description.sha256):
            if not (folder / name).is_file():
                raise ModelError(f"{folder} has no {name}, which the reader needs: {_EXPORT}.")
        _check_hashes(path, self.description.sha256)
        check_libraries(f"reader {folder}", "onnxruntime", "tokenizers")
        self._tokenizer = open_tokenizer(folder / TOKENIZER_FILE, f"reader {folder}")
        self._session = OnnxSession(folder / GRAPH_FILE)
        if missing := sorted(set(OUTPUTS) - set(self._session.outputs)):
            raise ModelError(
                f"{folder / GRAPH_FILE} has no output {missing[0]} and is no reader: it has "
                f"{', '.join(self._session.outputs)}; {_EXPORT}."
            )
        self._check_window(path)

    def find_span(self, question: str, texts: Sequence[str]) -> Span | None:
        """Find the span with the highest score; None if none is above `min_score`.

        Of equal scores, that of the first text counts. Texts after the first `MAX_WINDOWS`
        windows are not read.
        """
        import numpy as np

        windows = list(islice(self._split(replace_surrogates(question), texts), MAX_WINDOWS))

        def read(rows: list[int]) -> list[tuple[float, int, Span]]:
            batch = [windows[row] for row in rows]
            tokens = np.stack([window.tokens for window in batch])
            types = np.stack([window.token_types for window in batch])
            scored = zip(batch, *self._score(tokens, types), strict=True)
            spans = [self._find_best(texts, window, *scores) for window, *scores in scored]
            return [(-span.score, row, span) for row, span in zip(rows, spans, strict=True)]

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            batches = threads.map(read, batch_rows([len(window.tokens) for window in windows]))
            found = [span for batch in batches for span in batch]
        best = min(found)[2] if found else None
        return best if best is not None and best.score > self.description.min_score else None

    def _split(self, question: str, texts: Sequence[str]) -> Iterator[_Window]:
        """Yield the windows of the texts: the question, and overlapping parts of each text."""
        import numpy as np

        max_tokens = self.description.max_tokens
        for number, text in enumerate(texts):
            pair = self._tokenizer.encode(question, replace_surrogates(text))
            sides = pair.sequence_ids
            inside = [row for row, side in enumerate(sides) if side == 1]
            if not inside:
                continue
            asked = [row for row, side in enumerate(sides) if side == 0]
            too_long = set(asked[int(max_tokens * QUESTION_SHARE) :])
            before = [row for row in range(inside[0]) if row not in too_long]
            after = list(range(inside[-1] + 1, len(sides)))
            room = max_tokens - len(before) - len(after)
            step = room - int(max_tokens * OVERLAP_SHARE)
            tokens, types = np.array(pair.ids, np.int64), np.array(pair.type_ids, np.int64)
            offsets = np.array(pair.offsets, np.int64)
            for start in range(0, max(1, len(inside) - room + step), step):
                part = inside[start : start + room]
                rows = [*before, *part, *after]
                may_answer = np.zeros(len(rows), np.bool_)
                may_answer[len(before) : len(before) + len(part)] = True
                # A token of spaces alone is no answer.
                may_answer &= offsets[rows, 1] > offsets[rows, 0]
                yield _Window(number, tokens[rows], types[rows], offsets[rows], may_answer)

    def _score(self, tokens: "Numbers", token_types: "Numbers") -> "list[Scores]":
        """Return the scores of each token as the first and as the last token of the answer."""
        import numpy as np

        scores = self._session.run(OUTPUTS, tokens, token_types)
        for name, found in zip(OUTPUTS, scores, strict=True):
            if found.shape != tokens.shape or np.isnan(found).any():
                raise ModelError(
                    f"{self._session.graph} gives {name} of the shape {found.shape} for tokens of "
                    f"the shape {tokens.shape}, or scores that are no numbers: {_EXPORT}."
                )
        return scores

    def _find_best(
        self, texts: Sequence[str], window: _Window, starts: "Scores", ends: "Scores"
    ) -> Span:
        """Return the best span of a window: the shortest and first one of equal scores.

        The score is the logarithm of how much likelier the span is than no answer: normalizing
        the scores by a softmax over the window would not change this difference.
        """
        import numpy as np

        no_answer = float(starts[0] + ends[0])
        starts = np.where(window.may_answer, starts, -np.inf)
        ends = np.where(window.may_answer, ends, -np.inf)
        widths = range(min(self.description.max_answer_tokens, len(starts)))
        sums = [starts[: len(starts) - width] + ends[width:] for width in widths]
        width = int(np.argmax([scores.max() for scores in sums]))
        first = int(sums[width].argmax())
        score = float(sums[width][first]) - no_answer
        start, end = int(window.offsets[first, 0]), int(window.offsets[first + width, 1])
        return Span(window.text, *_extend_to_words(texts[window.text], start, end), score)

    def _check_window(self, description: Path) -> None:
        """Check that the model reads a window of `max_tokens`."""
        import numpy as np

        n_tokens = self.description.max_tokens
        try:
            for window in islice(self._split("a", ["a " * n_tokens]), 1):
                self._score(window.tokens[np.newaxis], window.token_types[np.newaxis])
        except ModelError as error:
            raise ModelError(
                f"{str(error).rstrip('.')}; if the model reads fewer than {n_tokens} tokens, "
                f"set max_tokens in {description}."
            ) from error


def _extend_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to whole words, and leave out the spaces around it."""

    def is_inside_word(place: int) -> bool:
        letters = text[place - 1 : place + 1] if place else ""
        return len(letters) == 2 and letters.isalnum() and not is_unspaced(letters)

    while is_inside_word(start):
        start -= 1
    while is_inside_word(end):
        end += 1
    # Some tokenizers count the space before a word to its token.
    return end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())


def load_reader(folder: Path) -> Reader:
    """Load the reader in a folder, or return it if this process has loaded it before.

    Raises `SettingsError` if there is no such folder, and what `Reader` raises.
    """
    if not folder.is_dir():
        raise SettingsError(
            f"There is no folder {folder}: search.reader_model is the folder of a reader, relative "
            "to settings.yaml, or null."
        )
    with _loading:
        return _load(folder.resolve())


@lru_cache(maxsize=2)
def _load(folder: Path) -> Reader:
    return Reader(folder)


def _read_description(path: Path) -> ReaderDescription:
    values = read_settings_yaml(read_text_file(path) or "", str(path))
    try:
        return ReaderDescription.model_validate({} if values is None else values)
    except ValidationError as error:
        message = describe_validation_error(error, ReaderDescription, str(path))
        raise SettingsError(message) from None


def _check_hashes(description: Path, hashes: Mapping[str, str]) -> None:
    """Check the files beside a description, whose hashes it states. Raises `ModelError`."""
    for name, expected in hashes.items():
        path = description.parent / name
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise ModelError(
                f"{path} is not the file that {description} describes: its sha256 should be "
                f"{expected} and is {actual}."
            )
