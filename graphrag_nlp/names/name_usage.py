"""The usage of names in a corpus: shares of mentions beside words and verbs of each kind."""

import numpy as np

from graphrag_nlp.names.name_forms import ClassifiedNames
from graphrag_nlp.names.variants import Variants

# Minimum shares of mentions: before a verb, a noun or a pronoun that suggests a type; after a
# preposition of place, for a known place.
MIN_HINT_SHARE, MIN_KNOWN_PLACE_SHARE = 0.2, 0.1


class NameUsage:
    """The usage of each entity in `variants`; `counts` has the mentions of each classified name.

    `place`, `preposition`, `determiner` and `article` are shares of mentions behind such a word,
    `person_verb` beside a verb for persons. `cues` and `hints` are the type that most words before
    or behind a name show, with their share.
    """

    def __init__(self, variants: Variants, classified: ClassifiedNames, counts: np.ndarray) -> None:
        n = len(variants.names)
        entity_of = variants.entity_of[: len(classified.names)]
        times = self.times = np.maximum(np.bincount(entity_of, counts, n), 1)

        def share_of(share: np.ndarray) -> list[float]:
            shares: list[float] = (np.bincount(entity_of, counts * share, n) / times).tolist()
            return shares

        def most_shown(by_type: dict[str, np.ndarray]) -> list[tuple[float, str]]:
            """Return the type that most words beside each entity show, with their share."""
            shares = np.array([*map(share_of, by_type.values())])
            kinds = map([*by_type].__getitem__, shares.argmax(axis=0).tolist())
            return [*zip(shares.max(axis=0).tolist(), kinds, strict=True)]

        self.place = share_of(classified.place_share)
        self.preposition = share_of(classified.preposition_share)
        self.determiner = share_of(classified.determiner_share)
        self.article = share_of(classified.article_share)
        self.hints = most_shown(classified.hint_shares)
        self.person_verb = share_of(classified.person_share)
        self.cues = most_shown(classified.cue_shares)

    def find_hint(self, number: int) -> str:
        """Return the type that the words behind a name suggest; "" if none or if unsure."""
        share, kind = self.hints[number]
        placed = max(self.place[number], self.article[number]) if kind == "person" else 0
        return kind if share >= MIN_HINT_SHARE and placed < MIN_KNOWN_PLACE_SHARE else ""
