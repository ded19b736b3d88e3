"""Case of sentences: what is read of a text, and the first line of Romance languages."""

from typing import SupportsIndex

from graphrag_nlp.names.span_boundaries import read_case
from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.sentences import Sentence

LINE = "Audiard de retour à Cannes avec son film"


class CountedText(str):
    """A text that counts the characters that are copied out of it."""

    n_copied = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        copied = super().__getitem__(key)
        self.n_copied += len(copied)
        return copied


def is_prose(text: str, start: int) -> bool:
    sentence = Sentence(start, start + len(LINE), prose=False)
    return read_case(text, sentence, False, language_of("fr")).is_prose


def test_only_the_sentence_itself_is_copied() -> None:
    text = CountedText("Il pleut. " * 1000 + LINE)
    is_prose(text, 10_000)
    assert text.n_copied <= 2 * len(LINE)


def test_blank_lines_may_stand_before_the_first_line() -> None:
    headline = "Audiard Revient Cannes Lyon avec son film à la fin"[: len(LINE)]
    assert is_prose(f"\n\n \n{headline}", 4)
    assert not is_prose(f"\n\n.\n{headline}", 4)
