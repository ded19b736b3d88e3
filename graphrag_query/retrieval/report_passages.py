"""Put the best passages on a question beside the reports in the contexts of global search."""

from collections.abc import Sequence

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answering.written_answer import Context, source_context
from graphrag_query.question.question import Question
from graphrag_query.retrieval.report_selection import subject_words
from graphrag_query.retrieval.theme_passages import community_paths, relevant_text_units


def add_passages(
    question: Question, batches: Sequence[Context], settings: GlobalSearch
) -> list[Context]:
    """Add to each context of reports the best passages of their communities.

    Passages take at most `passage_share` of a context, so that few reports have few passages.
    A passage of no community with a report goes to the first context. A question without a
    subject gets none.
    """
    share = settings.passage_share
    max_tokens = question.max_context_tokens(settings.max_context_tokens)
    if not share or not subject_words(question):
        return list(batches)
    index = question.index
    scores = relevant_text_units(question)
    units, paths = index.text_units(scores), community_paths(index, scores)
    left = dict(scores)
    # All calls together show at most `max_map_tokens`, unless they show all reports of a level.
    total = settings.max_map_tokens if settings.selection == "similar" else 1 << 40
    total -= sum(batch.n_tokens for batch in batches)
    found: list[Context] = []
    for batch in batches:
        reports = batch.shown["Reports"]
        own = [n for n in left if reports & set(paths[n])]
        if not found:
            known = set().union(*(other.shown["Reports"] for other in batches))
            own = [n for n in left if reports & set(paths[n]) or not known & set(paths[n])]
        room = min(max_tokens - batch.n_tokens, int(batch.n_tokens * share / (1 - share)), total)
        packed = source_context(question, {n: units[n] for n in own}, max(room, 0))
        total -= packed.n_tokens
        for number in packed.shown.get("Sources", ()):
            del left[number]
        found.append(_join_contexts(batch, packed))
    return found


def _join_contexts(reports: Context, passages: Context) -> Context:
    if passages.is_empty:
        return reports
    return Context(
        {**reports.tables, **passages.tables},
        f"{reports.text}\n{passages.text}",
        reports.n_tokens + passages.n_tokens,
        {**reports.n_left_out, **passages.n_left_out},
    )
