"""The names of each document."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

import numpy as np

from graphrag_nlp.list_columns import distinct_pairs


class NamesByDocument:
    """The distinct names of each document, as two columns in the order of first mention."""

    def __init__(self, document: np.ndarray, name: np.ndarray) -> None:
        self.document, self.name = document, name

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the number of each document with names, and the numbers of its names."""
        starts = np.flatnonzero(np.diff(self.document, prepend=-1))
        for start, end in pairwise([*starts.tolist(), len(self.document)]):
            yield int(self.document[start]), self.name[start:end].tolist()

    def of_documents_with(self, names: Collection[int]) -> "NamesByDocument":
        """Return the names of the documents that have at least one of some names."""
        numbers = np.fromiter(names, np.int64, len(names))
        is_wanted = np.zeros(max(numbers.max(initial=-1), self.name.max(initial=-1)) + 1, bool)
        is_wanted[numbers] = True
        has_wanted = np.zeros(self.document.max(initial=-1) + 1, bool)
        has_wanted[self.document[is_wanted[self.name]]] = True
        kept = has_wanted[self.document]
        return NamesByDocument(self.document[kept], self.name[kept])

    def count_documents(self, entity_of: Mapping[int, int]) -> Counter[int]:
        """Count the documents with each entity; `entity_of` maps some names to their entity."""
        entities = np.full(self.name.max(initial=-1) + 1, -1, np.int64)
        for name, entity in entity_of.items():
            if name < len(entities):  # a name that was added occurs in no document
                entities[name] = entity
        found = entities[self.name]
        is_wanted = found >= 0
        return Counter(distinct_pairs(self.document[is_wanted], found[is_wanted])[1].tolist())
