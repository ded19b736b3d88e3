"""Ask questions about whole corpora without a model, and compare with what was expected.

    python benchmarks/whole_corpus.py [--held] [--show]

Three projects of the workflow `embedded` are indexed: the sample of this repository, the labelled
passages, and planted news. Themes: of each question of benchmarks/labelled/questions.yaml, the
share of the expected key phrases in the first 350 words of the answer of global search. Counting:
the share of the questions whose answer is right; a count, a month or a direction has to stand in
the first 200 characters. `--held` asks the questions of held_questions.yaml, and
about other planted news. `--show` prints the answers, with what is missing.
"""

import argparse
import re
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from labels import LABELLED, SETTINGS, index_project, read_half, write_project
from planted_news import (
    Article,
    CountingQuestion,
    counting_questions,
    make_articles,
    write_articles,
)

import graphrag_query

REPOSITORY = Path(__file__).parent.parent
MAX_WORDS = 350
# Characters of an answer within which a count must stand.
BEGINNING = 200


def build_projects(folder: Path, articles: list[Article]) -> dict[str, Path]:
    """Write and index the three projects; return the folder of each."""
    projects = {name: folder / name for name in ("sample", "labelled", "planted")}
    shutil.copytree(REPOSITORY / "input", projects["sample"] / "input")
    (projects["sample"] / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    write_project(read_half("dev") + read_half("report"), projects["labelled"])
    write_articles(articles, projects["planted"] / "input")
    (projects["planted"] / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    for project in projects.values():
        index_project(project)
    return projects


def find_phrase(phrases: Sequence[str], text: str) -> re.Match[str] | None:
    """Find the first of several phrases as whole words, ignoring case."""
    pattern = "|".join(re.escape(" ".join(phrase.split())) for phrase in phrases)
    return re.search(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.IGNORECASE)


def plain_words(text: str, limit: int | None = None) -> str:
    """Join the words of a text by single spaces, without citations, up to a limit."""
    return " ".join(re.sub(r"\[Data:[^\]]*\]", "", text).split()[:limit])


def is_right(question: CountingQuestion, answer: str) -> bool:
    """Check whether an answer has the counts, in their places."""
    if question.begins and not find_phrase(question.begins, answer[:BEGINNING]):
        return False
    if not all(find_phrase(phrases, answer) for phrases in question.says):
        return False
    places = [find_phrase((value,), answer) for value in question.order]
    starts = [place.start() for place in places if place]
    return len(starts) == len(places) and starts == sorted(starts)


def read_counting(entry: Mapping[str, Any]) -> CountingQuestion:
    return CountingQuestion(
        entry["question"],
        tuple(entry.get("begins", ())),
        tuple(map(tuple, entry.get("says", ()))),
        tuple(entry.get("order", ())),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print the answers")
    parser.add_argument("--held", action="store_true", help="ask the questions kept apart")
    chosen = parser.parse_args(arguments)
    file = LABELLED / ("held_questions.yaml" if chosen.held else "questions.yaml")
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    articles = make_articles(300, seed=7) if chosen.held else make_articles()
    print("| corpus | theme questions | covered % | words | counting questions | right % |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for corpus, project in build_projects(Path(folder), articles).items():
            index = graphrag_query.open(project / "output")
            own = [entry for entry in entries if entry["corpus"] == corpus]
            themes = [entry for entry in own if "mentions" in entry]
            counting = [read_counting(entry) for entry in own if "mentions" not in entry]
            if corpus == "planted":
                counting = counting_questions(articles)
            covered, lengths, right = [], [], 0
            for entry in themes:
                answer = plain_words(index.global_(entry["question"]).text)
                shown = plain_words(answer, MAX_WORDS)
                missing = [p[0] for p in entry["mentions"] if not find_phrase(p, shown)]
                covered.append(1 - len(missing) / len(entry["mentions"]))
                lengths.append(len(answer.split()))
                if chosen.show:
                    print(f"\n> {entry['question']}\n{answer}\nmissing: {missing}")
            for question in counting:
                answer = plain_words(index.global_(question.question).text)
                right += is_right(question, answer)
                if chosen.show and not is_right(question, answer):
                    print(f"\n> {question}\n{answer}")
            share = f"{100 * statistics.mean(covered):.1f}" if covered else ""
            words = f"{statistics.mean(lengths):.0f}" if lengths else ""
            counted = f"{len(counting)} | {100 * right / len(counting):.0f}"
            print(f"| {corpus} | {len(themes)} | {share} | {words} | {counted} |", flush=True)


if __name__ == "__main__":
    main()
