"""A tuning: sample, description, types, examples, and the comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graphrag_evaluation.statistics import MAX_P_VALUE, Difference, compare_paired
from graphrag_evaluation.tuning.corpus_sample import CorpusSample, SampledPassage, sample_corpus
from graphrag_evaluation.tuning.extraction_score import ExtractionScore, count_missed_entities
from graphrag_evaluation.tuning.known_records import (
    KnownRecords,
    extract_by_rules,
    locate_records,
    read_index_records,
)
from graphrag_evaluation.tuning.prompt_trial import PROMPT, PromptTrial, system_and_user
from graphrag_evaluation.tuning.tuned_prompt import (
    MAX_TYPES,
    DocumentDescription,
    PromptExample,
    ProposedType,
    choose_examples,
    compose_prompt,
    describe_documents,
    description_format,
    make_example,
    propose_types,
    split_prompt,
)
from graphrag_index.extraction.graph_reply import FoundRecords, type_key
from graphrag_index.llm.prompts import Prompts, n_prompt_tokens, quote_text
from graphrag_index.llm.request import Outcome, Request, RequestSender
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_query.store.index_store import IndexStore

# Seed of the sample.
SEED = 17
# Tokens of passages in the request that asks for a description of the documents.
MAX_DESCRIBED_TOKENS = 12_000


class OpenModel(Protocol):
    """Opens the chat model of a name in the settings."""

    def __call__(self, name: str) -> RequestSender: ...


@dataclass(frozen=True)
class TuningOptions:
    """The choices of the user. Without a `model`, nothing is asked and nothing is measured."""

    model: str | None
    types: tuple[str, ...] = ()
    n_passages: int = 48
    reference_model: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Scores of the prompt in force and of the proposed prompt on the same held-out passages."""

    reference: str  # describes what the replies were compared with
    before: Sequence[ExtractionScore]
    after: Sequence[ExtractionScore]
    difference: Difference | None

    @property
    def is_better(self) -> bool:
        """Whether the proposed prompt is better by more than chance."""
        found = self.difference
        return found is not None and found.interval.mean > 0 and found.p_value < MAX_P_VALUE


@dataclass(frozen=True)
class Tuning:
    """The proposed prompt and types, with their sources and their scores."""

    sample: CorpusSample
    domain: str
    types: Sequence[ProposedType]
    examples: Sequence[PromptExample]
    about: str
    prompt: str
    settings: ExtractGraph  # with the proposed types
    n_unreadable: int  # replies, or records of replies, that could not be read
    comparison: Comparison | None


def tune(
    store: IndexStore, root: Path, settings: Settings, options: TuningOptions, open_model: OpenModel
) -> Tuning:
    """Propose a prompt for the documents of an index, and measure it on held-out documents.

    The same index, options and replies give the same proposal.
    """
    return _TuningRun(store, root, settings, options, open_model).run()


class _TuningRun:
    """The state of one tuning: the sample, the models, and counts of what cannot be read."""

    def __init__(
        self,
        store: IndexStore,
        root: Path,
        settings: Settings,
        options: TuningOptions,
        open_model: OpenModel,
    ) -> None:
        self.store, self.root, self.settings, self.options = store, root, settings, options
        self.open_model = open_model
        self.model = open_model(options.model) if options.model else None
        self.prompts = Prompts(root, "graphrag_evaluation")
        self.sample = sample_corpus(store, options.n_passages, SEED)
        self.in_force = Prompts(root).read_prompt(PROMPT)
        self.n_unreadable = 0
        self.given = (*options.types, *settings.extract_graph.entity_types)

    def run(self) -> Tuning:
        passages = self.sample.tuning
        description, found = DocumentDescription(), dict[str, FoundRecords]()
        if self.model is not None:
            description = self._describe(self.model)
            found = self._extract(self.model, passages)
        known = self._known_records(found)
        types = propose_types(
            self.given,
            (
                *description.types,
                *((e.type, key) for key, records in known.items() for e in records.entities),
            ),
        )
        section = self.settings.extract_graph.model_copy(
            update={"entity_types": [one.name for one in types]}
        )
        by_key = {type_key(one.name): one.name for one in types}
        examples = self._choose_examples(known, by_key, found)
        about = describe_documents(description.domain, self.sample.languages)
        prompt = compose_prompt(split_prompt(self.in_force), about, examples)
        proposed = PromptTrial(self.root, section, prompt)
        comparison = self._compare(self.model, proposed) if self.model is not None else None
        return Tuning(
            sample=self.sample,
            domain=description.domain,
            types=types,
            examples=examples,
            about=about,
            prompt=proposed.text,
            settings=section,
            n_unreadable=self.n_unreadable,
            comparison=comparison,
        )

    def _choose_examples(
        self,
        known: Mapping[str, KnownRecords],
        types: Mapping[str, str],
        found: Mapping[str, FoundRecords],
    ) -> list[PromptExample]:
        """Choose examples of the replies of the model; of the index if no reply is suitable."""
        of_index = read_index_records(self.store, self.sample.tuning)

        def candidates(records: Mapping[str, KnownRecords]) -> Iterator[PromptExample]:
            for one in self.sample.tuning:
                if (own := records.get(one.key)) is not None:
                    n_missed = count_missed_entities(own, of_index[one.key])
                    reply = found.get(one.key) if records is known else None
                    example = make_example(one, own, types, reply, n_missed)
                    if example is not None:
                        yield example

        return choose_examples(candidates(known)) or choose_examples(candidates(of_index))

    def _describe(self, model: RequestSender) -> DocumentDescription:
        """Ask a model to describe the documents by the passages to tune on."""
        shown, n_tokens = list[SampledPassage](), 0
        for passage in self.sample.tuning:
            n_tokens += n_prompt_tokens(passage.text)
            if n_tokens > MAX_DESCRIBED_TOKENS and shown:
                break
            shown.append(passage)
        given = f"These types are wanted in any case: {', '.join(self.given)}.\n\n"
        values = {"max_types": str(MAX_TYPES), "given": given if self.given else ""}
        system = self.prompts.fill("describe_documents", values).strip()
        text = "\n\n".join(f"Passage:\n{quote_text(passage.text)}" for passage in shown)
        format = description_format(self.sample.tuning)
        request = Request("description of the documents", system_and_user(system, text), format)
        (outcome,) = model.replies([request])
        self._count(outcome)
        return outcome.values[0] if outcome.values else DocumentDescription()

    def _extract(
        self, model: RequestSender, passages: Sequence[SampledPassage]
    ) -> dict[str, FoundRecords]:
        """Return the records that the prompt in force finds, by the keys of the passages."""
        section = self.settings.extract_graph.model_copy(update={"entity_types": list(self.given)})
        trial = PromptTrial(self.root, section, self.in_force)
        found = {}
        for passage, outcome, records in trial.extract(model, passages):
            self._count(outcome)
            if not outcome.failure:
                found[passage.key] = records
        return found

    def _count(self, outcome: Outcome) -> None:
        self.n_unreadable += bool(outcome.failure) + outcome.dropped

    def _known_records(self, found: Mapping[str, FoundRecords]) -> dict[str, KnownRecords]:
        """Return the records of a model, or those of the index, with their spans."""
        if not found:
            return read_index_records(self.store, self.sample.tuning)
        return _locate_all(self.sample.tuning, found)

    def _reference(
        self, passages: Sequence[SampledPassage]
    ) -> tuple[str, Mapping[str, KnownRecords]]:
        """Return the known records of passages, and a description of their source."""
        name = self.options.reference_model
        if name is not None:
            found = self._extract(self.open_model(name), passages)
            return f"the model {name}", _locate_all(passages, found)
        what = "the linguistic extractor"
        if any(step.name == "extract_graph_nlp" for step in self.store.version.steps):
            return what, read_index_records(self.store, passages)
        return what, extract_by_rules(self.store, passages, self.settings.extract_graph_nlp)

    def _compare(self, model: RequestSender, proposed: PromptTrial) -> Comparison:
        """Score the prompt in force and the proposed prompt on the held-out passages."""
        in_force = PromptTrial(self.root, self.settings.extract_graph, self.in_force)
        held_out = self.sample.held_out
        reference, known = self._reference(held_out)
        before, after = (one.evaluate(model, held_out, known) for one in (in_force, proposed))
        totals = [[score.total for score in scores] for scores in (before, after)]
        clusters = [passage.document for passage in held_out]
        difference = compare_paired(totals[0], totals[1], clusters)
        return Comparison(reference, before, after, difference)


def _locate_all(
    passages: Sequence[SampledPassage], found: Mapping[str, FoundRecords]
) -> dict[str, KnownRecords]:
    """Locate the records that a model found in passages, by the keys of the passages."""
    return {one.key: locate_records(one, found[one.key])[0] for one in passages if one.key in found}
