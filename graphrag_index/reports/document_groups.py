"""Groups of documents with the same subject, among the documents of one report."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from graphrag_index.reports.chosen_statements import Evidence
from graphrag_index.reports.text_nearness import Vectors, find_center

# Minimum share of the words of the shorter of two documents that both have, names apart, if they
# are on one subject. Each common name but the first, which joins the community, counts as a share.
MIN_COMMON_SHARE, SHARE_OF_NAME = 0.1, 0.05
# Minimum cosine of two groups of documents on one subject, names apart.
MIN_NEARNESS = 0.3
# Minimum share of the documents in the largest group, if groups are joined by their vectors.
MIN_JOINED_SHARE = 2 / 3
# A document with fewer words says too little to be on another subject.
MIN_WORDS_TO_DIFFER = 2
# Minimum number of documents of the main group, and its minimum share of all, in a report on it.
MIN_MAIN_DOCUMENTS, MIN_MAIN_SHARE = 2, 1 / 3


def group_documents(
    evidence: Sequence[Evidence], headlines: Mapping[int, str] = MappingProxyType({})
) -> list[frozenset[int]]:
    """Group the documents of candidate sentences by common words; the largest group comes first.

    Of groups of equal size, the one with the best sentence comes first. `evidence` are the
    sentences, best first; no other text of the documents is compared. Documents with the same
    headline, such as the letters of a thread, are in one group.
    """
    words: dict[int, set[str]] = {}
    names: dict[int, set[int]] = {}
    for sentence in evidence:
        words.setdefault(sentence.document, set()).update(sentence.words)
        names.setdefault(sentence.document, set()).update(sentence.entities)
    documents = list(words)
    named: dict[str, set[int]] = {}
    group_of: dict[int, set[int]] = {}
    for document in documents:
        headline = headlines.get(document, "")
        group = named.setdefault(headline, set()) if headline else set()
        group.add(document)
        group_of[document] = group
    for at, a in enumerate(documents):
        for b in documents[:at]:
            if group_of[a] is not group_of[b] and _are_alike(
                words[a], words[b], names[a], names[b]
            ):
                group_of[a] |= group_of[b]
                for document in group_of[b]:
                    group_of[document] = group_of[a]
    groups = [*{id(group): frozenset(group) for group in group_of.values()}.values()]
    # The sort is stable: groups of equal size keep the order of their best sentences.
    groups.sort(key=len, reverse=True)
    return groups


def join_near_groups(
    groups: Sequence[frozenset[int]], evidence: Sequence[Evidence], vectors: Vectors
) -> list[frozenset[int]]:
    """Join groups that say the like in other words, if most documents are in one group then.

    `vectors` has the vector of the words of each sentence, without names.
    """
    documents = [sentence.document for sentence in evidence]
    joined = list(groups)
    while len(joined) > 1:
        rows = [[at for at, one in enumerate(documents) if one in group] for group in joined]
        centers = np.array([find_center(vectors[row]) for row in rows])
        nearness = np.triu(centers @ centers.T, 1)
        a, b = divmod(int(nearness.argmax()), len(joined))
        if nearness[a, b] < MIN_NEARNESS:
            break
        joined[a] |= joined.pop(b)
    joined.sort(key=len, reverse=True)
    n_documents = sum(map(len, groups))
    return joined if len(joined[0]) >= MIN_JOINED_SHARE * n_documents else list(groups)


def _are_alike(a: set[str], b: set[str], names_a: set[int], names_b: set[int]) -> bool:
    n_words = min(len(a), len(b))
    if n_words < MIN_WORDS_TO_DIFFER:
        return True
    share = len(a & b) / n_words
    return share + SHARE_OF_NAME * max(0, len(names_a & names_b) - 1) >= MIN_COMMON_SHARE


def are_mixed(groups: Sequence[Collection[int]]) -> bool:
    """Return whether no group of documents is large enough to be the subject of a report."""
    n_documents = sum(map(len, groups))
    return len(groups) > 1 and len(groups[0]) < max(
        MIN_MAIN_DOCUMENTS, MIN_MAIN_SHARE * n_documents
    )


def find_shared_name(
    evidence: Sequence[Evidence], weight: Mapping[int, float], excluded: Collection[int] = ()
) -> list[int]:
    """Return the member that most documents mention, if half of them do; else no member.

    Members in `excluded` are not searched.
    """
    documents: dict[int, set[int]] = {}
    for sentence in evidence:
        for entity in sentence.entities:
            if entity not in excluded:
                documents.setdefault(entity, set()).add(sentence.document)
    if not documents:
        return []
    best = max(documents, key=lambda entity: (len(documents[entity]), weight[entity], -entity))
    n_documents = len({sentence.document for sentence in evidence})
    return [best] if 2 * len(documents[best]) >= max(n_documents, 4) else []
