"""Plant documents in a series, and measure whether local search reads and says whose figure it is.

    python benchmarks/series.py
    python benchmarks/series.py --kinds reports --places title file --things 200 --totals

A document is about one thing in one period: `reports` are of companies by quarter, `patients` of
patients by visit, `tickets` of customers by day. Its sentences name neither. Where the subject
stands is the place: the first line (`title`), the name of the file (`file`), columns of a table
that the settings name (`metadata`), or lines such as "Patient: ..." at the top (`field`). Between
the sentences with the figures are figures of other periods, aims and other things, and talk. The
workflow is `embedded`, without a model. A row of the table is a kind of question:

- `one`, `compare` (things in a period), `list` and `trend` (periods of a thing) have an answer;
  `no_thing` names a stranger, `no_period` a period without a document of the thing, `no_figure` a
  figure that the document lacks.
- `12`, `24`: sentences with the figures among the first passages, in per cent; `read`: among all
  passages of an answer, whose mean number is `passages`. `24` is of a search for as many.
- `refused`: answers with the outcome `no_evidence`; `said`: figures in the others; in per cent.
- `foreign`: answers whose first statements, one for each document asked for, have a planted value
  that no document asked for has; `wrong`: a value that is no figure asked for; `nearest`: like
  `foreign`, in any statement after one that says that nothing answers clearly. Numbers of answers.
- `CPU ms`: mean of an answer, after a first one.
"""

import argparse
import csv
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from answers import CITATION
from near_misses import STATEMENTS

import graphrag_query
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index

PLACES = ("title", "file", "metadata", "field")
ANSWERABLE = ("one", "compare", "list", "trend")
UNANSWERABLE = ("no_thing", "no_period", "no_figure")
# A round of questions: two each of `compare` and `trend`.
ROUND = (*ANSWERABLE, *UNANSWERABLE, "compare", "trend")
SHARE_WITH_FIGURE = 0.75  # of the figures of a document
SHARE_DISTRACTOR = 0.4  # of each form, for each figure
SHARE_WITHOUT_DOCUMENT = 0.05  # of the periods of a thing
SHARE_BY_TICKET = 0.5  # of the questions about tickets
N_STRANGERS = 6
MAX_ATTEMPTS = 40  # for a value that no other sentence has
# Setting of `load_documents` that names the columns of the subject.
COLUMNS = (
    *("corpus", "place", "kind", "questions", "12", "read", "passages", "24"),
    *("refused", "said", "foreign", "wrong", "nearest", "CPU ms"),
)
MONTHS = (
    "January February March April May June July August September October November December"
).split()
ORDINALS = ("first", "second", "third", "fourth")
STARTS = "Al Bren Cas Dor El Far Hal Ivar Jor Kas Lin Mar Nes Ost Pern Rud Sol Tav Ul Yar".split()
MIDDLES = "a e i o u an el or".split()
WORDS = re.compile(r"\w+(?:[.,/-]\w+)*%?")
# Numbers between two bounds, and alternatives, in the values of series.yaml.
RANGE = re.compile(r"\{([\d.]+)\.\.([\d.]+)(?::([^}]*))?\}")
CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")

Cell = tuple[str, int]  # thing, number of its period


class Series(NamedTuple):
    """Texts of a kind of corpus; `series.yaml` says what its fields are."""

    thing: str
    periods_a_year: int
    table: str
    names: Sequence[str]
    figures: Mapping[str, Sequence[str]]  # sentence, value
    distractors: Sequence[str]
    others: Sequence[str]
    step: int
    sentences: Sequence[int]
    talk: Sequence[str]
    titles: Sequence[str]
    files: Sequence[str]
    fields: Sequence[str]
    columns: Mapping[str, str]
    periods: Sequence[str]
    dates: Sequence[str]
    given: Sequence[str] = ()
    forms: Sequence[str] = ("",)
    unordered: Sequence[str] = ()


TEXTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
KINDS = {kind: Series(**texts) for kind, texts in TEXTS.items()}


@dataclass(frozen=True)
class Question:
    kind: str
    text: str
    cells: Set[Cell] = frozenset()  # documents asked for
    values: Sequence[str] = ()
    evidence: Sequence[str] = ()  # sentences


@dataclass
class Corpus:
    """Documents, their truth, and questions."""

    series: Series
    parts: dict[Cell, Mapping[str, Any]] = field(default_factory=dict)
    texts: dict[Cell, str] = field(default_factory=dict)
    facts: dict[tuple[str, int, str], str] = field(default_factory=dict)  # value by cell, figure
    # Documents that have a value, by its words.
    planted: dict[tuple[str, ...], set[Cell]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


def words(text: str) -> tuple[str, ...]:
    """Return the words and figures of a text, without currencies."""
    return tuple(WORDS.findall(text.lower().replace(" %", "%")))


def make_names(series: Series, n: int, rng: random.Random) -> list[str]:
    """Invent names of things, no two with the same proper word."""
    proper: dict[str, None] = {}
    while len(proper) < n:
        proper.setdefault("".join(map(rng.choice, (STARTS, MIDDLES, series.names))))
    givens = [f"{name} " for name in series.given] or [""]
    return [rng.choice(givens) + name + rng.choice(series.forms) for name in proper]


def name_parts(
    series: Series, thing: str, number: int, ticket: int = 0, day: int = 0
) -> Mapping[str, Any]:
    """Return the parts of a subject, by their names in the forms."""
    years, order = divmod(number, series.periods_a_year)
    parts = {"c": thing, "slug": re.sub(r"\W+", "-", thing).strip("-").lower(), "t": f"T-{ticket}"}
    when = {"y": 2022 + years, "q": order + 1, "o": ORDINALS[order % 4]}
    return parts | when | {"m": order + 1, "month": MONTHS[order], "d": day}


def make_corpus(kind: str, n_things: int, n_periods: int, n_questions: int, seed: int) -> Corpus:
    """Plant the documents of a kind, and questions about them."""
    rng = random.Random(f"{kind} {seed}")
    series = KINDS[kind]
    corpus = Corpus(series)
    names = make_names(series, n_things + N_STRANGERS, rng)
    tickets = rng.sample(range(1_000, 1_000 + 40 * n_things * n_periods), n_things * n_periods)
    for thing in names[:n_things]:
        for number in range(n_periods):
            ticket, day = tickets.pop(), rng.randint(1, 28)
            if rng.random() < SHARE_WITHOUT_DOCUMENT:
                continue
            parts = name_parts(series, thing, number, ticket, day)
            corpus.parts[thing, number] = parts
            corpus.texts[thing, number] = make_text(corpus, (thing, number), rng)
    while len(corpus.questions) < n_questions:
        kind = ROUND[len(corpus.questions) % len(ROUND)]
        asked = make_question(corpus, kind, names[n_things:], rng)
        corpus.questions += [asked] if asked else []
    return corpus


def new_value(corpus: Corpus, name: str, rng: random.Random) -> str:
    """Invent a value of a figure that no document has, if one is found soon."""

    def number(match: re.Match[str]) -> str:
        low, high, form = match.groups(default="")
        if "." in form:
            return format(rng.uniform(float(low), float(high)), form)
        return format(rng.randint(int(low), int(high)), form)

    form = corpus.series.figures[name][1]
    for _ in range(MAX_ATTEMPTS):
        value = CHOICE.sub(lambda match: rng.choice(match[1].split("|")), RANGE.sub(number, form))
        if words(value) not in corpus.planted:
            break
    return value


def make_text(corpus: Corpus, cell: Cell, rng: random.Random) -> str:
    """Write the sentences of a document, which do not say what it is about."""
    series = corpus.series
    before = (cell[0], cell[1] - series.step)
    sentences = [rng.choice(series.talk) for _ in range(rng.randint(*series.sentences))]
    first = min(8, len(sentences) // 3)

    def plant(form: str, name: str, value: str) -> None:
        corpus.planted.setdefault(words(value), set()).add(cell)
        sentence = form.format(n=name, v=value, s=rng.choice(series.others))
        sentences.insert(rng.randint(first, len(sentences)), sentence)

    for name, (sentence, _) in series.figures.items():
        if rng.random() < SHARE_WITH_FIGURE:
            corpus.facts[*cell, name] = new_value(corpus, name, rng)
            plant(sentence, name, corpus.facts[*cell, name])
        for form in series.distractors:
            if rng.random() >= SHARE_DISTRACTOR:
                continue
            value: str | None = new_value(corpus, name, rng)
            if form is series.distractors[0] and before[1] >= 0:
                # No other document has a figure that a question finds missing.
                value = corpus.facts.get((*before, name))
            if value:
                plant(form, name, value)
    paragraphs = []
    while sentences:
        size = rng.randint(3, 7)
        paragraphs.append(" ".join(sentences[:size]))
        sentences = sentences[size:]
    return "\n\n".join(paragraphs) + "\n"


def make_question(
    corpus: Corpus, kind: str, strangers: Sequence[str], rng: random.Random
) -> Question | None:
    """Return a question; None if the chosen figure, thing and period do not allow one."""
    series, facts, parts = corpus.series, corpus.facts, corpus.parts
    things, numbers = (sorted(set(values)) for values in zip(*parts, strict=True))
    name = rng.choice(list(series.figures))
    thing, number = cell = rng.choice(things), rng.choice(numbers)
    by_ticket = "ticket" in series.columns and rng.random() < SHARE_BY_TICKET

    def period(number: int, date: Mapping[str, Any] | None = None) -> str:
        form = rng.choice((*series.periods, *(series.dates if date else ())))
        said = form.format_map(date or name_parts(series, thing, number))
        return f"on {said}" if form in series.dates else f"in {said}"

    def question(text: str, keys: Sequence[Cell], cells: Sequence[Cell] = ()) -> Question:
        values = [facts[*key, name] for key in keys]
        evidence = [series.figures[name][0].format(v=value) for value in values]
        return Question(kind, text, frozenset(cells or keys), values, evidence)

    if kind in ("one", "no_figure"):
        if cell not in parts or ((*cell, name) in facts) != (kind == "one"):
            return None
        of = f"in ticket {parts[cell]['t']}" if by_ticket else f"of {thing} "
        when = "" if by_ticket else period(number, parts[cell])
        return question(f"What was the {name} {of}{when}?", [cell] * (kind == "one"), [cell])
    if kind == "no_thing":
        if by_ticket:
            return question(f"What was the {name} in ticket T-{rng.randint(100_000, 999_999)}?", [])
        return question(f"What was the {name} of {rng.choice(strangers)} {period(number)}?", [])
    if kind == "no_period":
        later = range(numbers[-1] + 2, numbers[-1] + 13)
        gaps = [n for n in range(numbers[-1]) if (thing, n) not in parts]
        return question(f"What was the {name} of {thing} {period(rng.choice(gaps or later))}?", [])
    if kind in ("compare", "trend") and name in series.unordered:
        return None
    if kind == "trend":
        having = [n for n in numbers if n >= number and (thing, n, name) in facts]
        having = having[: rng.randint(2, 4)]
        if len(having) < 2:
            return None
        first, last = (period(n).removeprefix("in ") for n in (having[0], having[-1]))
        cells = [(thing, n) for n in range(having[0], having[-1] + 1)]
        text = f"How did the {name} of {thing} develop from {first} to {last}?"
        return question(text, [(thing, n) for n in having], cells)
    some = [other for other in things if (other, number, name) in facts]
    if len(some) < 2:
        return None
    some = rng.sample(some, rng.randint(2, min(5, len(some))))
    cells = [(other, number) for other in some]
    if kind == "compare":
        text = f"Which {series.thing} had the highest {name} among {joined(some)} {period(number)}?"
    elif by_ticket:
        text = f"What was the {name} in tickets {joined([parts[cell]['t'] for cell in cells])}?"
    else:
        text = f"What was the {name} of {joined(some)} {period(number)}?"
    return question(text, cells)


def joined(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"


def write_project(corpus: Corpus, place: str, project: Path, seed: int) -> None:
    """Write documents with their subject at a place, and settings."""
    rng, series = random.Random(seed), corpus.series
    (project / "input").mkdir(parents=True)
    (project / "workflows").symlink_to(Path(__file__).resolve().parent.parent / "workflows")
    settings: dict[str, Any] = {"workflow": "embedded"}
    rows = []
    for number, (cell, text) in enumerate(corpus.texts.items()):
        parts = corpus.parts[cell]
        rows.append({name: form.format_map(parts) for name, form in series.columns.items()})
        rows[-1]["text"] = text
        forms = {"title": series.titles, "field": series.fields}.get(place, series.files)
        subject = rng.choice(forms).format_map(parts)
        path, content = f"{number:05}.txt", f"{subject}\n\n{text}"
        if place == "file":
            path, content = f"{subject}.txt", text
        if place != "metadata":
            (project / "input" / path).write_text(content, encoding="utf-8", newline="\n")
    if place == "metadata":
        settings["load_documents"] = {"metadata_columns": list(series.columns)}
        with (project / "input" / series.table).open("w", encoding="utf-8", newline="") as file:
            if series.table.endswith(".csv"):
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
            else:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (project / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


class Given(NamedTuple):
    """Scores of an answer; shares are between 0 and 1."""

    read_12: float
    read: float
    n_passages: int
    read_24: float
    refused: bool
    said: float
    foreign: bool
    wrong: bool
    nearest: bool
    milliseconds: float = 0.0


def found_values(text: str, planted: Mapping[tuple[str, ...], Any]) -> set[tuple[str, ...]]:
    """Return the planted values that a text has."""
    said = words(text)
    lengths = {len(value) for value in planted}
    return {said[at : at + n] for n in lengths for at in range(len(said))} & planted.keys()


def judge(corpus: Corpus, asked: Question, answer: Answer, deeper: Answer) -> Given:
    """Score an answer, and the passages that a search for 24 of them reads."""

    def share_read(passages: Sequence[str]) -> float:
        read = f" {' '.join(words(' '.join(passages)))} "
        held = [f" {' '.join(words(sentence))} " in read for sentence in asked.evidence]
        return sum(held) / max(1, len(held))

    read = passages_of(answer)
    refused = answer.outcome is Outcome.NO_EVIDENCE
    missing = STATEMENTS.match(answer.text)
    text = answer.text[missing.end() if missing else 0 :]
    n_statements = None if missing else max(1, len(asked.cells))
    statements = " | ".join(CITATION.split(text)[:n_statements])
    values = set[tuple[str, ...]]() if refused else found_values(statements, corpus.planted)
    right = set(map(words, asked.values))
    wrong = values - right
    foreign = any(not corpus.planted[value] & asked.cells for value in wrong)
    said = right & found_values(text, corpus.planted) if not (refused or missing) else ()
    return Given(
        *(share_read(read[:12]), share_read(read), len(read)),
        share_read(passages_of(deeper)[:24]),
        refused,
        len(said) / max(1, len(right)),
        *(foreign and not missing, bool(wrong) and not missing, foreign and missing is not None),
    )


def passages_of(answer: Answer) -> list[str]:
    """Return the texts of the passages that an answer was made of, best first."""
    tables = answer.context.tables if answer.context else {}
    return list(tables["Sources"]["text"]) if "Sources" in tables else []


def ask(index: Index, corpus: Corpus) -> list[Given]:
    """Ask all questions, and score the answers."""
    index.local(corpus.questions[0].text)
    given = []
    for asked in corpus.questions:
        started = time.process_time()
        answer = index.local(asked.text)
        milliseconds = 1000 * (time.process_time() - started)
        deeper = index.local(asked.text, top_k_text_units=24)
        given.append(judge(corpus, asked, answer, deeper)._replace(milliseconds=milliseconds))
    return given


def describe(given: Sequence[Given]) -> str:
    """Return the cells of a row of the table."""
    cells = [str(len(given))]
    for name, values in zip(Given._fields, zip(*given, strict=True), strict=True):
        if name in ("foreign", "wrong", "nearest"):
            cells.append(str(sum(values)))
        else:
            per_cent = 1 if name in ("n_passages", "milliseconds") else 100
            cells.append(f"{per_cent * sum(values) / len(values):.1f}")
    return " | ".join(cells)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--places", nargs="+", choices=PLACES, default=PLACES)
    parser.add_argument("--things", type=int, default=24, help="companies, patients or customers")
    parser.add_argument("--periods", type=int, default=8, help="quarters or months")
    parser.add_argument("--questions", type=int, default=90, help="of a kind of corpus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--totals", action="store_true", help="print no row for a kind of question")
    options = parser.parse_args(arguments)
    print(f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|", sep="\n")
    for kind in options.kinds:
        counts = (options.things, options.periods, options.questions)
        corpus = make_corpus(kind, *counts, options.seed)
        for place in options.places:
            with tempfile.TemporaryDirectory() as folder:
                project = Path(folder) / "project"
                write_project(corpus, place, project, options.seed)
                command = [sys.executable, "-m", "graphrag_index", "run", "--quiet"]
                subprocess.run([*command, "--root", str(project)], check=True)
                with graphrag_query.open(project / "output") as index:
                    given = list(zip(corpus.questions, ask(index, corpus), strict=True))
            single = () if options.totals else [(name,) for name in (*ANSWERABLE, *UNANSWERABLE)]
            for names in (*single, ANSWERABLE, UNANSWERABLE):
                rows = [one for asked, one in given if asked.kind in names]
                total = "answerable" if names == ANSWERABLE else "unanswerable"
                label = names[0] if len(names) == 1 else total
                if rows:
                    print(f"| {kind} | {place} | {label} | {describe(rows)} |", flush=True)


if __name__ == "__main__":
    main()
