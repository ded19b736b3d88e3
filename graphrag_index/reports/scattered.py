"""Reports whose sentences are on nothing common: each sentence is on a subject of its own.

Lists of quotations, digests and pages with examples name much in one document, whose sentences no
title says together.
"""

from collections.abc import Mapping, Sequence

from graphrag_index.reports.chosen_statements import Evidence
from graphrag_index.reports.extractive import SentencePool
from graphrag_index.reports.report_titles import Headings
from graphrag_index.reports.text_nearness import embed

# Number of the best sentences of a report that are compared, and their minimum mean cosine.
MAX_COMPARED, MIN_COHESION = 12, 0.1
# Minimum cosine of the headline of the only document and a sentence that it stands for.
MIN_HEADLINE_NEARNESS = 0.2


def find_scattered(
    reports: Sequence[Sequence[Evidence]], headlines: Sequence[Mapping[int, str]]
) -> list[bool]:
    """Return for each report whether its best sentences are on nothing common.

    `headlines` maps the documents of each report to their headlines. A headline that says what a
    sentence says holds together the sentences of one document.
    """
    texts: list[list[str]] = []
    for evidence, headline_of in zip(reports, headlines, strict=True):
        compared = evidence[:MAX_COMPARED]
        documents = {one.document for one in compared}
        headline = headline_of.get(documents.pop(), "") if len(documents) == 1 else ""
        texts.append([headline, *(one.text for one in compared)])
    vectors = embed([text for some in texts for text in some])
    found, start = [], 0
    for some in texts:
        headline, own = vectors[start], vectors[start + 1 : start + len(some)]
        start += len(some)
        n, total = len(own), own.sum(axis=0)
        # The square of the sum of unit vectors has the cosine of each pair twice, and n ones.
        cohesion = (float(total @ total) - n) / (n * (n - 1)) if n > 1 else 1.0
        is_scattered = cohesion < MIN_COHESION
        if is_scattered and some[0]:
            is_scattered = float((own @ headline).max()) < MIN_HEADLINE_NEARNESS
        found.append(is_scattered)
    return found


def choose_apart(
    pool: SentencePool, headings: Headings, max_findings: int, max_sentences: int
) -> tuple[list[Evidence], list[tuple[str, list[Evidence]]]]:
    """Choose no summary, and findings of one sentence each, with its heading."""
    findings: list[tuple[str, list[Evidence]]] = []
    covered = set[int]()
    while len(findings) < min(max_findings, max_sentences):
        chosen = pool.take_sentences(1, covered, is_summary=True)
        if not chosen:
            break
        heading = headings.compose_grouped(chosen)
        if heading and heading not in (other for other, _ in findings):
            findings.append((heading, chosen))
    return [], findings
