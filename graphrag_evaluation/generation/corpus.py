"""The texts of an index, searched for sentences about a name or a statement."""

from collections.abc import Iterator

from graphrag_evaluation.coverage import WordWeights, stated_shares
from graphrag_evaluation.generation.facts import Fact, names_subject
from graphrag_evaluation.systems import weigh_words
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.index import Index

# A sentence with this share of the words of a predicate may state it of another subject.
MIN_STATED_SHARE = 0.6
# Text units that are searched for such sentences.
TOP_K_TEXT_UNITS = 20


class Corpus:
    """The texts of an index, to check that a question has one answer, or none."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._weights: WordWeights = weigh_words(index)
        self._clear: dict[str, bool] = {}

    def is_clear(self, fact: Fact) -> bool:
        """Return whether the predicate of a fact is stated of its subject alone."""
        if fact.predicate not in self._clear:
            self._clear[fact.predicate] = not self._is_stated_of_another(fact)
        return self._clear[fact.predicate]

    def _is_stated_of_another(self, fact: Fact) -> bool:
        for text in self.similar_texts(fact.predicate):
            sentences = [text[one.start : one.end] for one in split_sentences(text)]
            shares = stated_shares([fact.predicate], sentences, self._weights)
            if shares[0] >= MIN_STATED_SHARE and not names_subject(text, fact):
                return True
        return False

    def are_related(self, name: str, other: str) -> bool:
        """Return whether a text names both of two entities."""
        both = [f" {fold(one)} " for one in (name, other)]
        texts = (f" {fold(text)} " for text in self.similar_texts(f"{name} {other}"))
        return any(all(one in text for one in both) for text in texts)

    def holds(self, name: str) -> bool:
        """Return whether a text has a name."""
        folded = f" {fold(name)} "
        return any(folded in f" {fold(text)} " for text in self.similar_texts(name))

    def similar_texts(self, words: str, top_k: int = TOP_K_TEXT_UNITS) -> Iterator[str]:
        """Yield the texts of the text units that match words best, in the order of the index."""
        store = self._index.store
        rows = store.vectors("text_unit_text").find_matching_rows(
            words, top_k, ["human_readable_id"]
        )
        units = store.text_units(rows["human_readable_id"])
        return (unit["text"] for unit in units.values())
