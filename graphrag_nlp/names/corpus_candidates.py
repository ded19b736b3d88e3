"""Candidates for names and terms, collected from all documents in shards.

A shard has some documents, which are split where their language changes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import polars as pl

from graphrag_nlp.corpus import NameOptions, Progress, ShardFrames, Shards
from graphrag_nlp.names.name_spans import NameCandidates
from graphrag_nlp.names.uncased import ReadTexts
from graphrag_nlp.names.word_table import DocumentWords, TermCandidates, Vocabulary, mixes_languages
from graphrag_nlp.text.code import blank_code
from graphrag_nlp.text.languages import Language, find_language_ranges, language_of
from graphrag_nlp.text.sentences import Sentence


def collect_corpus(
    texts: ReadTexts,
    sentences: pl.DataFrame,
    settings: NameOptions,
    progress: Progress,
    shards: Shards,
) -> tuple[NameCandidates, TermCandidates, dict[str, Counter[str]], set[str]]:
    """Collect the candidates of all documents.

    Returns candidates for names and for terms, counts of the words in lower case by language code,
    and the codes of all languages.
    """
    names, terms = NameCandidates(), TermCandidates()
    lower: dict[str, Counter[str]] = defaultdict(Counter)
    codes: set[str] = set()
    work = _prepare_shards(texts, sentences)
    collected = shards.map(_collect_candidates, work, settings.noun_phrases, keep_parts=True)
    for (first, languages), found in collected:
        names.add_frames(found, first)
        terms.add_frames(found, first)
        for code, word, count in found["words"].iter_rows():
            lower[code][word] += count
        codes.update(languages)
        progress.advance(len(languages))
    return names, terms, lower, codes


def _prepare_shards(
    texts: ReadTexts, sentences: pl.DataFrame
) -> Iterator[tuple[tuple[int, list[str]], ShardFrames]]:
    """Yield ((first document, languages), shard) for some documents and their sentences.

    Documents are numbered from 0 in each shard, so that a shard is the same if documents are added
    before it.
    """
    # The sentences of document i are the rows from bounds[i] to bounds[i + 1].
    bounds = np.append(0, np.cumsum(np.bincount(sentences["document"].to_numpy())))
    rows = sentences.select("document", "start_char", "end_char", "quotable")
    for batch in texts():
        # A blank document at the end of the corpus has no sentences.
        first, last = np.minimum((batch["number"][0], batch["number"][-1] + 1), len(bounds) - 1)
        start = int(bounds[first])
        own = rows.slice(start, int(bounds[last]) - start)
        offset = batch["number"][0]
        shard = {
            "documents": batch.with_columns(pl.col("number") - offset),
            "sentences": own.with_columns(pl.col("document") - offset),
        }
        yield (offset, batch["language"].to_list()), shard


def _collect_candidates(shard: ShardFrames, with_noun_phrases: bool) -> ShardFrames:
    """Collect candidates for names and terms in some documents, and the words in lower case."""
    names, terms = NameCandidates(), TermCandidates()
    vocabularies: dict[str, Vocabulary] = {}
    columns = shard["sentences"].select("start_char", "end_char", "quotable").get_columns()
    all_sentences = list(map(Sentence, *map(pl.Series.to_list, columns)))
    owner = shard["sentences"]["document"].to_numpy()
    for number, text, code in shard["documents"].iter_rows():
        first, last = np.searchsorted(owner, (number, number + 1)).tolist()
        if first == last:
            continue
        sentences = all_sentences[first:last]
        text = blank_code(text)
        for start, end, language, words in _split_by_language(text, code, vocabularies):
            own, part = sentences, text[start:end]
            if len(part) < len(text):
                own = [
                    Sentence(s.start - start, min(s.end, end) - start, s.prose)
                    for s in sentences
                    if start <= s.start < end
                ]
            names.add_document(number, part, words, own, language, start)
            if with_noun_phrases:
                terms.add_document(number, part, words, language, start)
    names.add_usage()
    counts = pl.DataFrame(
        [
            (code, word, count)
            for code, vocabulary in vocabularies.items()
            for word, count in vocabulary.count_lower_words().items()
        ],
        {"language": pl.String, "word": pl.String, "count": pl.Int64},
        orient="row",
    )
    return {**names.to_frames(), **terms.to_frames(), "words": counts}


def _split_by_language(
    text: str, code: str, vocabularies: dict[str, Vocabulary]
) -> Iterator[tuple[int, int, Language, DocumentWords]]:
    """Yield the parts of a document in one language: (start, end, language, words)."""

    def vocabulary_of(code: str) -> Vocabulary:
        return vocabularies.setdefault(code, Vocabulary(language_of(code)))

    words = vocabulary_of(code).read_words(text)
    ranges = find_language_ranges(text, code) if mixes_languages(words) else []
    for start, end, own in ranges if len(ranges) > 1 else ((0, len(text), code),):
        if len(ranges) > 1:
            words = vocabulary_of(own).read_words(text[start:end])
        vocabulary_of(own).count_words(words)
        yield start, end, language_of(own), words
