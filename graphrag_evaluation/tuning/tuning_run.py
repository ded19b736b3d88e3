"""A tuning: sample, description, types, examples, comparison and proposed files."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from graphrag_evaluation.statistics import MAX_P_VALUE, Difference, compare_paired
from graphrag_evaluation.tuning.corpus_sample import (
    CorpusSample,
    KnownRecords,
    SampledPassage,
    extract_by_rules,
    locate_records,
    read_index_records,
    sample_corpus,
)
from graphrag_evaluation.tuning.prompt_trial import (
    PROMPT,
    ExtractionScore,
    PromptTrial,
    count_missed_entities,
    mean_parts,
    system_and_user,
)
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
from graphrag_index.errors import SettingsError, why_unread
from graphrag_index.extraction.graph_reply import FoundRecords, type_key
from graphrag_index.llm.ledger import FILE as LEDGER_FILE
from graphrag_index.llm.prompts import FOLDER, Prompts, n_prompt_tokens, quote_text
from graphrag_index.llm.request import Outcome, Request, RequestSender
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE, Settings
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_index.storage.atomic import check_outside, write_text_file
from graphrag_query.store.index_store import IndexStore

# Seed of the sample.
SEED = 17
# Tokens of passages in the request that asks for a description of the documents.
MAX_DESCRIBED_TOKENS = 12_000
DIFF_FILE, REPORT_FILE, PREVIOUS_FOLDER = "changes.diff", "tuning.json", "previous"
# Prompts that get the description of the documents too, by the step that uses them. The score is
# about extraction only, so they are proposed, but never installed.
DESCRIBED_PROMPTS = {
    "extract_covariates": "extract_covariates",
    "create_community_reports": "create_community_reports",
}
SECTION, KEY = "extract_graph", "entity_types"


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


def replace_entity_types(text: str, types: Sequence[str]) -> str:
    """Set `extract_graph.entity_types` in the text of a settings file, and keep the rest.

    Raises `SettingsError` if the text is written so that the key cannot be replaced.
    """
    value = yaml.safe_dump(list(types), default_flow_style=True, allow_unicode=True, width=10_000)
    value = value.strip()
    edited = _edit_yaml(text, value)
    expected = yaml.safe_load(text) or {}
    expected[SECTION] = {**(expected.get(SECTION) or {}), KEY: list(types)}
    try:
        is_right = yaml.safe_load(edited) == expected
    except yaml.YAMLError:
        is_right = False
    if not is_right:
        raise SettingsError(
            f"{SETTINGS_FILE} is written in a form that cannot be edited here: write "
            f"{SECTION}.{KEY}: {value} yourself."
        )
    return edited


def check_settings_text(root: Path) -> None:
    """Raise `SettingsError` if the types cannot be set in the settings file of a project."""
    replace_entity_types(_read_settings(root), ["type"])


def _edit_yaml(text: str, value: str) -> str:
    root = yaml.compose(text, yaml.SafeLoader)
    section = _find_value(root, SECTION)
    if section is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{SECTION}:\n  {KEY}: {value}\n"
    key = _find_value(section, KEY)
    if key is not None:
        start, end_mark = key.start_mark.index, key.end_mark.index
        # A list in block style ends at the start of the next key: keep the line break.
        rest = text[start:end_mark]
        tail = rest[len(rest.rstrip()) :]
        # In block style the value begins on a line of its own, or right after the key if null.
        before = text[:start].rstrip(" \n") + " "
        return f"{before}{value}{tail}{text[end_mark:]}"
    if not isinstance(section, yaml.MappingNode) or section.flow_style or not section.value:
        if isinstance(section, yaml.MappingNode) and section.flow_style:
            at = section.start_mark.index + 1
            comma = ", " if section.value else ""
            return f"{text[:at]}{KEY}: {value}{comma}{text[at:]}"
        # The section is empty: its keys may be commented out below it.
        line_end = text.find("\n", _find_key_end(root))
        at = len(text) if line_end < 0 else line_end + 1
        start = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
        return f"{start}  {KEY}: {value}\n{text[at:]}"
    at, column = section.start_mark.index, section.start_mark.column
    return f"{text[:at]}{KEY}: {value}\n{' ' * column}{text[at:]}"


def _find_value(node: Any, key: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _find_key_end(root: Any) -> int:
    return next(int(name.end_mark.index) for name, _ in root.value if name.value == SECTION)


def proposed_files(root: Path, settings: Settings, tuning: Tuning) -> dict[str, str]:
    """Return the texts of the proposed prompts and settings, by path in the project."""
    files = {f"{FOLDER}/{PROMPT}.txt": tuning.prompt}
    steps = {step.name for step in load_workflow(root, settings.workflow).steps}
    prompts = Prompts(root)
    for name, step in DESCRIBED_PROMPTS.items():
        if step in steps and tuning.about:
            instructions = split_prompt(prompts.read_prompt(name))
            files[f"{FOLDER}/{name}.txt"] = compose_prompt(instructions, tuning.about, ())
    if tuning.settings.entity_types != settings.extract_graph.entity_types:
        text = _read_settings(root)
        files[SETTINGS_FILE] = replace_entity_types(text, tuning.settings.entity_types)
    return files


def _read_settings(root: Path) -> str:
    try:
        return (root / SETTINGS_FILE).read_text(encoding="utf-8-sig")
    except OSError as error:
        where = root / SETTINGS_FILE
        raise SettingsError(f"{where} cannot be read: {why_unread(error)}.") from error


def text_in_force(root: Path, path: str) -> str:
    """Return the text that a proposed file would replace: a prompt, or the settings."""
    return _read_settings(root) if path == SETTINGS_FILE else Prompts(root).read_prompt(
        Path(path).stem
    )  # fmt: skip


def unified_diff(root: Path, files: Mapping[str, str]) -> str:
    """Return the differences between the files in force and the proposed files."""
    parts = []
    for path, text in files.items():
        before = text_in_force(root, path)
        old, new = (part.splitlines(keepends=True) for part in (before, text))
        for line in difflib.unified_diff(old, new, f"in force/{path}", f"proposed/{path}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def report_tuning(tuning: Tuning) -> dict[str, Any]:
    """Return everything about a tuning, for `tuning.json`."""
    comparison = tuning.comparison
    evaluation: dict[str, Any] | None = None
    if comparison is not None:
        evaluation = {
            "reference": comparison.reference,
            "before": mean_parts(comparison.before),
            "after": mean_parts(comparison.after),
            "difference": asdict(comparison.difference) if comparison.difference else None,
            "is_better": comparison.is_better,
            "passages": [
                {
                    "label": one.passage.label,
                    "before": one.total,
                    "after": other.total,
                    "missed": other.missed,
                    "ungrounded": other.ungrounded,
                    "failure": other.failure,
                }
                for one, other in zip(comparison.before, comparison.after, strict=True)
            ],
        }
    return {
        "documents": tuning.sample.n_documents,
        "languages": tuning.sample.languages,
        "tuned_on": [passage.label for passage in tuning.sample.tuning],
        "domain": tuning.domain,
        "types": [asdict(one) for one in tuning.types],
        "examples": [asdict(example) for example in tuning.examples],
        "unreadable": tuning.n_unreadable,
        "evaluation": evaluation,
    }


def write_proposal(
    folder: Path, root: Path, files: Mapping[str, str], report: Mapping[str, Any]
) -> None:
    """Write the proposed files, their differences and the report; remove earlier ones."""
    report_text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
    texts = {**files, DIFF_FILE: unified_diff(root, files), REPORT_FILE: report_text}
    for path in (folder / SETTINGS_FILE, *(folder / FOLDER).glob("*.txt")):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink(missing_ok=True)
    for name, text in texts.items():
        write_text_file(folder / name, [text])


def check_folder(folder: Path, root: Path, output: Path) -> None:
    """Raise an error if a proposal would overwrite a project, an index or foreign files."""
    check_outside(folder, output)
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    is_own = bool(present & {REPORT_FILE, LEDGER_FILE})
    if folder.resolve() == root.resolve() or (present and not is_own) or folder.is_file():
        raise SettingsError(f"{folder} holds other files: name an empty or a new folder with --to.")


def install_files(
    folder: Path, root: Path, files: Mapping[str, str]
) -> tuple[list[str], Path | None]:
    """Put the measured prompt and the types into force.

    The files that are replaced are kept first, in a new folder of `previous/` of the proposal.
    Each file is replaced atomically, and an installation that was interrupted can be repeated.
    Returns the changed files, and the folder of the previous ones; None if all files are new.
    """
    present = {}
    for name in (f"{FOLDER}/{PROMPT}.txt", SETTINGS_FILE):
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else None
        if name in files and text != files[name]:
            present[name] = text
    earlier = folder / PREVIOUS_FOLDER
    n = sum(1 for _ in earlier.iterdir()) if earlier.is_dir() else 0
    kept = earlier / str(n + 1)
    replaced = {name: text for name, text in present.items() if text is not None}
    for name, text in replaced.items():
        write_text_file(kept / name, [text])
    for name in present:
        write_text_file(root / name, [files[name]])
    return list(present), kept if replaced else None
