"""A tuning: its requests to a model, the proposed prompts, and the files that it writes."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import (
    SampledPassage,
    read_index_records,
    sample_corpus,
)
from graphrag_evaluation.tuning.tuned_prompt import (
    MAX_TYPES,
    DocumentDescription,
    PromptExample,
    choose_examples,
    compose_prompt,
    describe_documents,
    description_format,
    make_example,
    propose_types,
)
from graphrag_index.extraction.graph_reply import FoundRecords, schema_from_settings
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt
from graphrag_index.llm.prompts import FOLDER, Prompts, n_prompt_tokens, quote_text
from graphrag_index.llm.request import (
    Message,
    Outcome,
    Request,
    RequestSender,
    pair_outcomes,
)
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_index.storage.atomic import write_text_file
from graphrag_query.store.index_store import IndexStore

# The ledger counts all requests of a tuning for this step.
TUNE_STEP = "tune"
# Seed of the sample.
SEED = 17
# Tokens of passages in the request that asks for a description of the documents.
MAX_DESCRIBED_TOKENS = 12_000
# A type of the index is proposed if it occurs in at least so many passages of the sample.
MIN_PASSAGES_OF_TYPE = 2
DIFF_FILE = "changes.diff"
# Prompts with the names of their steps, that get the description of the documents too.
DESCRIBED_PROMPTS = ("extract_covariates", "create_community_reports")


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
    languages = Counter(store.scan("documents").select("language").collect().to_series())
    languages = Counter(dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))))
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
        made = (make_example(one, records[one.number], proposed) for one in passages)
        return filter(None, made)

    examples = (choose_examples(candidates(found)) if found else []) or choose_examples(
        candidates(stated)
    )
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
        path = f"{FOLDER}/{name}.txt"
        for line in difflib.unified_diff(old, new, f"in force/{path}", f"proposed/{path}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    write_text_file(folder / DIFF_FILE, parts)
