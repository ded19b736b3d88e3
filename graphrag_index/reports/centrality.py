"""The centrality of candidate sentences: how well they stand for a whole report."""

from collections import Counter
from collections.abc import Sequence

from graphrag_index.reports.chosen_statements import Evidence

# Factor of a summary sentence that no nearness was measured for, and of one at the start of a text,
# which often sums the text up, within so many characters.
DISTANT_FACTOR, LEAD_FACTOR, LEAD_CHARACTERS = 0.5, 1.5, 500
# Maximum number of documents of a report that begins with the first sentence of one of them; the
# minimum wording and number of characters of this sentence.
MAX_DOCUMENTS_OF_LEAD, MIN_LEAD_WORDING, MIN_LEAD_LENGTH = 4, 0.7, 60


def rate_centrality(evidence: Sequence[Evidence], nearness: Sequence[float] = ()) -> list[float]:
    """Rate how central sentences are: near the centre of all, or at the start of a document.

    `nearness` has that of the best sentences, or nothing in languages without vectors.
    """
    most = max(nearness, default=0.0)
    shares = [DISTANT_FACTOR + near / most for near in nearness]
    shares += [DISTANT_FACTOR if shares else 1.0] * (len(evidence) - len(shares))
    return [
        share * (LEAD_FACTOR if is_lead(one) else 1.0)
        for one, share in zip(evidence, shares, strict=True)
    ]


def is_lead(sentence: Evidence) -> bool:
    """Return whether a sentence stands at the start of its document."""
    # Only a sentence that is known to stand there: the default place is empty.
    return sentence.place[1] > 0 and sentence.place[0] < LEAD_CHARACTERS


def find_lead(sentences: Sequence[Evidence]) -> Evidence | None:
    """Return the first sentence of the document of most sentences; None if it is unclear.

    It says who and when, so that the sentences on members can be understood. Among many documents,
    none stands for the others.
    """
    counts = Counter(one.document for one in sentences)
    if not 0 < len(counts) <= MAX_DOCUMENTS_OF_LEAD:
        return None
    main = max(counts, key=lambda at: counts[at])
    leads = [one for one in sentences if one.document == main and is_lead(one)]
    first = min(leads, key=lambda one: one.place, default=None)
    is_clear = first and first.wording >= MIN_LEAD_WORDING and len(first.text) >= MIN_LEAD_LENGTH
    return first if is_clear else None
