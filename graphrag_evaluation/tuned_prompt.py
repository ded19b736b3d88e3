"""Tuned prompts: types of entities, examples and a description of the documents."""

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import (
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    clean_line,
    schema_from_settings,
    type_key,
)
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt
from graphrag_index.llm.prompts import FOLDER, Prompts, n_prompt_tokens, quote_text
from graphrag_index.llm.request import (
    Message,
    Outcome,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    RequestSender,
    object_schema,
    pair_outcomes,
)
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_index.schema.tables import READING
from graphrag_index.storage.atomic import write_text_file
from graphrag_nlp.text.lines import find_in_reading
from graphrag_nlp.text.normalize import fold, title_key
from graphrag_query.store.index_store import IndexStore

# A shorter text unit, in characters, is a heading or a fragment: nothing can be extracted.
MIN_CHARACTERS = 80
# Maximum number of text units from which the sample is chosen. It limits time and memory.
MAX_POOL = 5_000
# Headings of the added sections. A later tuning replaces everything from the first heading on.
ABOUT_HEADING, EXAMPLES_HEADING = "# About these documents", "# Examples from these documents"
EXAMPLES_NOTE = "They show the replies that are wanted. Their passages are material as well."
# Types of the linguistic extractor that only say that the type is not known.
UNKNOWN_TYPES = frozenset({"", "name", "noun phrase", "acronym"})
MAX_TYPES = 12
MAX_EXAMPLES = 2
# Maximum tokens of an example: a longer one costs more in each request than it helps.
MAX_EXAMPLE_TOKENS = 900
MIN_EXAMPLE_ENTITIES = 2
LANGUAGE_NAMES = {
    **{"cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English"},
    **{"es": "Spanish", "fr": "French", "it": "Italian", "ja": "Japanese", "ko": "Korean"},
    **{"nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "sv": "Swedish"},
    **{"ar": "Arabic", "he": "Hebrew", "hi": "Hindi", "zh": "Chinese"},
}
_BRACES = re.compile(r"\{\{\w+\}\}")
# Step under which the ledger stores all requests of a tuning.
TUNE_STEP = "tune"
# Seed of the sample.
SEED = 17
# Tokens of passages in the request that asks for a description of the documents.
MAX_DESCRIBED_TOKENS = 12_000
# A type of the index is proposed if it occurs in at least this many passages of the sample.
MIN_PASSAGES_OF_TYPE = 2
DIFF_FILE = "changes.diff"
# Prompts with the names of their steps, that get the description of the documents too.
DESCRIBED_PROMPTS = ("extract_covariates", "create_community_reports")


class SampledPassage(NamedTuple):
    """A text unit of the index, with its number and its place in the document."""

    number: int
    document: str  # id
    label: str  # names the passage in messages
    start_char: int
    headings: str
    passage: Passage
    source: str  # characters of the document, of which `text` is the reading

    @property
    def text(self) -> str:
        return self.passage.text

    def find_span(self, start: int, end: int) -> Span:
        """Return the span in `text` of a span of the document; (0, 0) if it lies outside."""
        first, last = start - self.start_char, end - self.start_char
        is_inside = 0 <= first < last <= len(self.source)
        return find_in_reading(self.text, self.source, first, last) if is_inside else (0, 0)


def sample_corpus(store: IndexStore, n_passages: int, seed: int) -> list[SampledPassage]:
    """Choose passages that cover the documents of an index.

    Raises `TableError` if the index has no text unit that is long enough.
    """
    documents = store.scan("documents").select("title", "path", "language", document_id="id")
    columns = ("human_readable_id", "document_id", "start_char", "end_char", "headings")
    units = (
        store.scan("text_units")
        .select(*columns, text=READING, source="text")
        .filter(pl.col("text").str.strip_chars().str.len_chars() >= MIN_CHARACTERS)
    )
    numbers = units.select("human_readable_id").collect().to_series()
    if len(numbers) > MAX_POOL:
        numbers = numbers.sample(MAX_POOL, seed=seed)
    pool = (
        units.filter(pl.col("human_readable_id").is_in(numbers.implode()))
        .join(documents, on="document_id")
        .sort("human_readable_id")
        .collect()
    )
    if pool.is_empty():
        raise TableError(
            f"The index in {store.backend.output} has no text unit of {MIN_CHARACTERS} characters: "
            "there is nothing to tune on."
        )
    vectors = _read_vectors(store, pool["human_readable_id"].to_list())
    rows = choose_rows(
        pool["document_id"].to_list(), [*map(fold, pool["text"])], vectors, n_passages, seed
    )
    return [
        SampledPassage(
            row["human_readable_id"],
            row["document_id"],
            f"{row['path'] or row['title']}, characters {row['start_char']} to {row['end_char']}",
            row["start_char"],
            row["headings"] or "",
            Passage(row["text"], row["language"]),
            row["source"],
        )
        for row in pool[rows].iter_rows(named=True)
    ]


def _read_vectors(store: IndexStore, numbers: Sequence[int]) -> "npt.NDArray[np.float32]":
    """Return the vectors of text units; equal vectors if the index has none."""
    if not store.has_table("text_unit_vectors"):
        return np.ones((len(numbers), 1), np.float32)
    vectors = store.open_mapped("text_unit_vectors").matrix("vector", numbers).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def choose_rows(
    documents: Sequence[str],
    texts: Sequence[str],
    vectors: "npt.NDArray[np.float32]",
    n: int,
    seed: int,
) -> list[int]:
    """Choose rows with different texts by k-means++ (Arthur & Vassilvitskii 2007).

    A row is more likely to be chosen the less it resembles those that are chosen already, and
    each document gives one row before one gives two.
    """
    random = np.random.default_rng(seed)
    distances = np.ones(len(texts))
    n_of_document: Counter[str] = Counter()
    chosen: dict[str, int] = {}
    while len(chosen) < n:
        free = [row for row, text in enumerate(texts) if text not in chosen]
        if not free:
            break
        fewest = min(n_of_document[documents[row]] for row in free)
        free = [row for row in free if n_of_document[documents[row]] == fewest]
        total = distances[free].sum()
        row = int(random.choice(free, p=distances[free] / total if total > 0 else None))
        new = np.clip(1 - vectors.astype(np.float64) @ vectors[row], 0, None)
        distances = np.minimum(distances, new) if chosen else new
        chosen[texts[row]] = row
        n_of_document[documents[row]] += 1
    return list(chosen.values())


def read_index_records(
    store: IndexStore, passages: Sequence[SampledPassage]
) -> dict[int, FoundRecords]:
    """Return what the index states about text units, by their numbers.

    Names are written as in the text, and descriptions are its sentences.
    """
    mentions = (
        store.scan("mentions")
        .filter(pl.col("text_unit").is_in([passage.number for passage in passages]))
        .select("text_unit", "entity", "start_char", "end_char")
        .sort("text_unit", "start_char")
        .collect()
    )
    entities = store.scan("entities").select("human_readable_id", "id", "type").collect()
    numbers = dict(entities.select("id", "human_readable_id").iter_rows())
    types = dict(entities.select("human_readable_id", "type").iter_rows())
    evidence = (
        store.scan("relationships")
        .select("source_id", "target_id", "evidence")
        .explode("evidence")
        .unnest("evidence")
        .filter(pl.col("document_id").is_in({passage.document for passage in passages}))
        .collect()
    )
    links: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for source, target, document, start, end in evidence.iter_rows():
        links[document].append((numbers[source], numbers[target], start, end))
    found = {}
    for one in passages:
        spans: dict[int, Span] = {}
        for _, entity, start, end in mentions.filter(text_unit=one.number).iter_rows():
            first, last = one.find_span(start, end)
            known = spans.get(entity, (0, 0))
            if last - first > known[1] - known[0]:
                spans[entity] = (first, last)
        names = {entity: one.text[slice(*span)] for entity, span in spans.items()}
        stated: dict[frozenset[int], FoundRelationship] = {}
        for source, target, start, end in links[one.document]:
            first, last = one.find_span(start, end)
            if source in names and target in names and first < last:
                sentence = clean_line(one.text[first:last])
                link = FoundRelationship(names[source], names[target], "", sentence)
                stated.setdefault(frozenset((source, target)), link)
        found[one.number] = FoundRecords(
            tuple(
                FoundEntity(
                    names[entity],
                    types[entity] or "",
                    clean_line(one.text[slice(*one.passage.extend_to_sentences(*span))]),
                )
                for entity, span in spans.items()
            ),
            tuple(stated.values()),
        )
    return found


@dataclass(frozen=True)
class PromptExample:
    """A passage of a document, word for word, with the reply that is wanted."""

    document: str
    text: str
    entities: tuple[Mapping[str, str], ...]
    relationships: tuple[Mapping[str, Any], ...]
    n_left_out: int  # entities of the passage that the example does not show

    @property
    def types(self) -> set[str]:
        """The types of its entities."""
        return {entity["type"] for entity in self.entities}

    @property
    def reply(self) -> str:
        """The reply, as the model should write it."""
        records = {"entities": self.entities, "relationships": self.relationships}
        return json.dumps(records, ensure_ascii=False)


def propose_types(
    given: Sequence[str], passages_of_types: Iterable[tuple[str, int]], min_passages: int
) -> dict[str, int]:
    """Return the given types in their order, then the most frequent others.

    `passages_of_types` are pairs (type, number of a passage that names an entity of this type).
    Each type has its number of passages; others than the given have `min_passages` at least.
    """
    found: dict[str, set[int]] = defaultdict(set)
    spellings: dict[str, str] = {}
    for name, passage in passages_of_types:
        key = type_key(name)
        if key not in UNKNOWN_TYPES:
            found[key].add(passage)
            spellings.setdefault(key, clean_line(name).lower())
    first = {type_key(name): name for name in reversed(given)}
    others = [key for key in found if key not in first and len(found[key]) >= min_passages]
    others.sort(key=lambda key: (-len(found[key]), key))
    keys = list(dict.fromkeys(map(type_key, given)))
    keys += others[: max(0, MAX_TYPES - len(keys))]
    return {first.get(key) or spellings[key]: len(found[key]) for key in keys}


def make_example(
    passage: SampledPassage, found: FoundRecords, types: Iterable[str]
) -> PromptExample | None:
    """Make an example of a passage and its records, or return None if it is not suitable.

    Entities of other types, and names that do not stand in the passage, are left out.
    """
    wanted = {type_key(name): name for name in types}
    entities, names = [], {}
    for entity in found.entities:
        kind, place = wanted.get(type_key(entity.type)), passage.passage.find_name(entity.name)
        written = {passage.text[slice(*span)] for span in place.spans} if place else ()
        if kind is not None and entity.name in written:
            names[title_key(entity.name)] = entity.name
            entities.append({**entity._asdict(), "type": kind})
    relationships = [
        {
            **link._asdict(),
            "source": names[title_key(link.source)],
            "target": names[title_key(link.target)],
            "strength": int(link.strength),
        }
        for link in found.relationships
        if {title_key(link.source), title_key(link.target)} <= names.keys()
    ]
    if len(entities) < MIN_EXAMPLE_ENTITIES or not relationships:
        return None
    n_left_out = len(found.entities) - len(entities)
    example = PromptExample(
        passage.document, passage.text, tuple(entities), tuple(relationships), n_left_out
    )
    # Double braces would be a placeholder of the prompt.
    return None if _BRACES.search(example.text + example.reply) else example


def choose_examples(candidates: Iterable[PromptExample]) -> list[PromptExample]:
    """Choose the examples that together show most types, of different documents.

    An example that leaves out an entity of its passage would teach a model to do the same: it
    comes after all others. On a tie, more relationships for each token are better.
    """
    n_tokens = [(one, n_prompt_tokens(one.text + one.reply)) for one in candidates]
    free = [(one, n) for one, n in n_tokens if n <= MAX_EXAMPLE_TOKENS]
    chosen: list[PromptExample] = []
    shown: set[str] = set()

    def value(item: tuple[PromptExample, int]) -> tuple[int, int, float]:
        one, n = item
        return -one.n_left_out, len(one.types - shown), len(one.relationships) / n

    while free and len(chosen) < MAX_EXAMPLES:
        best, _ = max(free, key=value)
        chosen.append(best)
        shown |= best.types
        free = [(one, n) for one, n in free if one.document != best.document]
    return chosen


@dataclass(frozen=True)
class DocumentDescription:
    """The documents as a model describes them; types with the passages that name their entities."""

    domain: str = ""
    persona: str = ""  # a reader of such documents, described for a model
    types: tuple[tuple[str, int], ...] = ()


def description_format(passages: Sequence[SampledPassage]) -> ReplyFormat:
    """Return the format of a description. A type is dropped if no passage has a name of it."""
    text = {"type": "string"}
    record = object_schema({"name": text, "names": {"type": "array", "items": text}})
    fields = {"domain": text, "persona": text, "types": {"type": "array", "items": record}}

    def find_passages(names: Sequence[Any]) -> Iterator[int]:
        for one in passages:
            if any(isinstance(name, str) and one.passage.find_name(name) for name in names):
                yield one.number

    def read(data: Any) -> ParsedReply:
        if not isinstance(data, dict) or not isinstance(data.get("domain"), str):
            raise ReplyError("it must be an object with the text domain and the list types")
        records = data.get("types")
        types: list[tuple[str, int]] = []
        dropped = 0
        for entry in records if isinstance(records, list) else []:
            name = entry.get("name") if isinstance(entry, dict) else None
            names = entry.get("names") if isinstance(entry, dict) else None
            numbers = [*find_passages(names)] if isinstance(names, list) else []
            if isinstance(name, str) and type_key(name) and numbers:
                types += ((name, number) for number in numbers)
            else:
                dropped += 1
        domain, persona = (clean_line(str(data.get(name) or "")) for name in ("domain", "persona"))
        return ParsedReply(DocumentDescription(domain, persona, tuple(types)), dropped)

    instructions = (
        'Reply with JSON: {"domain": "…", "persona": "…", "types": [{"name": "…", "names": ["…"]}]}'
    )
    return ReplyFormat("description_of_documents", object_schema(fields), read, instructions)


def describe_documents(description: DocumentDescription, languages: Iterable[str]) -> str:
    """Write the section of a prompt that tells what the documents are."""
    lines = [description.domain]
    if description.persona:
        lines.append(f"Read them as {description.persona.rstrip('.')}.")
    known = [LANGUAGE_NAMES[code] for code in languages if code in LANGUAGE_NAMES]
    if known:
        lines.append(f"They are written in {', '.join(known)}.")
    said = "\n".join(filter(None, lines))
    return f"{ABOUT_HEADING}\n{_BRACES.sub('', said)}" if said else ""


def compose_prompt(prompt: str, about: str, examples: Sequence[PromptExample] = ()) -> str:
    """Add the description of the documents and examples to a prompt, in place of earlier ones."""
    places = [at for at in map(prompt.find, (ABOUT_HEADING, EXAMPLES_HEADING)) if at >= 0]
    parts = [prompt[: min(places, default=len(prompt))].strip(), about]
    if examples:
        shown = (f"Passage:\n{one.text.strip()}\nReply:\n{one.reply}" for one in examples)
        parts.append("\n\n".join([f"{EXAMPLES_HEADING}\n{EXAMPLES_NOTE}", *shown]))
    return "\n\n".join(filter(None, parts)) + "\n"


@dataclass(frozen=True)
class Tuning:
    """The proposed types and prompts, with what they are made from."""

    n_passages: int
    languages: Mapping[str, int]  # documents of the index by language, the most frequent first
    description: DocumentDescription
    types: Mapping[str, int]  # with the number of sampled passages that name such an entity
    examples: Sequence[PromptExample]
    prompts: Mapping[str, str]  # texts by name
    n_unreadable: int  # replies, or records of replies, that could not be read


def tune(
    store: IndexStore,
    root: Path,
    settings: Settings,
    *,
    types: Sequence[str],
    n_passages: int,
    model: RequestSender | None,
) -> Tuning:
    """Propose types of entities and prompts for the documents of an index.

    Without a model, all comes from what the index states. The same index, options and replies
    give the same proposal.
    """
    passages = sample_corpus(store, n_passages, SEED)
    stated = read_index_records(store, passages)
    codes = store.scan("documents").select("language").collect()["language"]
    languages = dict(Counter(codes).most_common())
    given = (*types, *settings.extract_graph.entity_types)
    description, found, n_unreadable = DocumentDescription(), dict[int, FoundRecords](), 0
    if model is not None:
        (outcome,) = model.replies([_ask_for_description(root, passages, given)])
        n_unreadable += bool(outcome.failure) + outcome.dropped
        description = outcome.values[0] if outcome.values else description
    if description.types:
        proposed = propose_types(given, description.types, 1)
    else:
        of_index = ((e.type, number) for number, one in stated.items() for e in one.entities)
        proposed = propose_types(given, of_index, MIN_PASSAGES_OF_TYPE)
    if model is not None:
        section = settings.extract_graph.model_copy(update={"entity_types": [*proposed]})
        for passage, outcome, records in _extract(model, passages, root, section):
            n_unreadable += bool(outcome.failure) + outcome.dropped
            found[passage.number] = records

    def candidates(records: Mapping[int, FoundRecords]) -> Iterator[PromptExample]:
        known = ((one, records[one.number]) for one in passages if one.number in records)
        return filter(None, (make_example(*pair, proposed) for pair in known))

    examples = choose_examples(candidates(found)) or choose_examples(candidates(stated))
    about = describe_documents(description, languages)
    prompts = Prompts(root)
    texts = {"extract_graph": compose_prompt(prompts.read_prompt("extract_graph"), about, examples)}
    steps = {step.name for step in load_workflow(root, settings.workflow).steps}
    for name in DESCRIBED_PROMPTS:
        if name in steps and about:
            texts[name] = compose_prompt(prompts.read_prompt(name), about)
    return Tuning(len(passages), languages, description, proposed, examples, texts, n_unreadable)


def _ask_for_description(
    root: Path, passages: Sequence[SampledPassage], given: Sequence[str]
) -> Request:
    """Return the request that describes the documents by passages."""
    shown, n_tokens = list[str](), 0
    for passage in passages:
        n_tokens += n_prompt_tokens(passage.text)
        if n_tokens > MAX_DESCRIBED_TOKENS and shown:
            break
        shown.append(f"Passage:\n{quote_text(passage.text)}")
    told = f"These types are wanted in any case: {', '.join(given)}.\n\n" if given else ""
    values = {"max_types": str(MAX_TYPES), "given": told}
    system = Prompts(root, "graphrag_evaluation").fill("describe_documents", values).strip()
    messages = [
        Message(role="system", content=system),
        Message(role="user", content="\n\n".join(shown)),
    ]
    return Request("description of the documents", messages, description_format(passages))


class _NoHistory:
    """A substitute for the chat model: a tuning has no earlier requests for other types."""

    def get_meta(self, name: str) -> str | None:
        return None

    def set_meta(self, name: str, value: str) -> None: ...

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        return ()


def _extract(
    model: RequestSender, passages: Sequence[SampledPassage], root: Path, section: ExtractGraph
) -> Iterator[tuple[SampledPassage, Outcome, FoundRecords]]:
    """Send the requests of the step extract_graph; yield the outcomes with their records."""
    schema = schema_from_settings(section)
    prompt = ExtractionPrompt(schema, section.max_gleanings, Prompts(root), _NoHistory())
    requests = (
        (one, prompt.build_first_request(PassagePrompt(one.passage, one.label, one.headings)))
        for one in passages
    )
    for passage, outcome in pair_outcomes(model, requests):
        values = [value for value in outcome.values if isinstance(value, FoundRecords)]
        yield passage, outcome, prompt.merge_replies(values) if values else FoundRecords()


class UnsentRequests:
    """A substitute for a chat model that keeps the requests for an estimate."""

    def __init__(self) -> None:
        self.requests = list[Request]()

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield a failure for each request."""
        for request in requests:
            self.requests.append(request)
            yield Outcome(request.unit, failure="not sent")


def write_proposal(folder: Path, root: Path, texts: Mapping[str, str]) -> None:
    """Write the proposed prompts, and their differences from those in force."""
    for path in (folder / FOLDER).glob("*.txt"):
        if path.stem not in texts:
            path.unlink()
    parts = []
    for name, text in texts.items():
        write_text_file(folder / FOLDER / f"{name}.txt", [text])
        before = Prompts(root).read_prompt(name)
        old, new = (part.splitlines(keepends=True) for part in (before, text))
        for line in difflib.unified_diff(old, new, f"in force/{name}.txt", f"proposed/{name}.txt"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    write_text_file(folder / DIFF_FILE, parts)
