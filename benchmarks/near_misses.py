"""Ask questions whose evidence is gone, and count the answers that say that it is missing.

    python benchmarks/near_misses.py

The questions with a short answer of `benchmarks/answers.py`, and those about the labelled passages,
in local search without a model. Each is asked of two indexes: of the whole corpus, and of one
without the supporting documents that hold its answer (without the last one, if no document has the
answer in the same words), so that what is near remains. For each index: `refused` as `no_evidence`;
`says so`: begins with what no sentence says; `said`: has the answer, which other documents may
hold, too; `both`: has the answer and still says that it is missing; and `words` of sentences of an
answer that does not have it. Printed as Markdown, in per cent of the questions, the words as means
over them. Sets of `../shared/data` that are not there are left out.

`--every` and `--first` ask every n-th question. `--indexes` names a folder that keeps the indexes.
"""

import argparse
import gzip
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import answers
from labels import LABELLED, read_half, write_project
from labels import index_project as index_labelled

import graphrag_query
from graphrag_nlp.text.languages import read_lists
from graphrag_query.answer import Outcome
from graphrag_query.index import Index

# Number of indexes without evidence of a set: each lacks that of every n-th question.
N_INDEXES = 2
CASES = ("gone", "present")
COLUMNS = ("set", "questions", "evidence", "refused", "says so", "said", "both", "words")
# What an answer begins with if it says that something is missing.
STATEMENTS = re.compile(
    "|".join(
        re.escape(text).replace(r"\{words\}", ".*?")
        for kind in ("unclear_without", "unclear")
        for text in read_lists("graphrag_query/question/refusals")[kind].values()
    )
)


class Asked(NamedTuple):
    """A question, its answers in normalized words, and the documents that hold one of them."""

    question: str
    wanted: Set[str]
    holding: Set[str]


class Corpus(NamedTuple):
    """A set of questions; `index` makes an index without some of the documents."""

    name: str
    questions: Sequence[Asked]
    index: Callable[[Path, Set[str]], None]


class Given(NamedTuple):
    """An answer: whether it was refused, says that something is missing, and has the answer."""

    refused: bool
    says_so: bool
    said: bool
    n_words: int


def holds(text: str, wanted: Iterable[str]) -> bool:
    """Return whether a text has one of some answers as whole words."""
    words = f" {answers.normalize(text)} "
    return any(f" {answer} " in words for answer in wanted)


def read_set(folder: Path) -> Corpus:
    """Read a set of `../shared/data`."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = {str(row["id"]): row for row in map(json.loads, lines)}
    questions = []
    for row in answers.read_questions(folder):
        texts = (row["answer"], *(row.get("aliases") or ()))
        wanted = {answers.normalize(str(text)) for text in texts} - {""}
        supporting = [str(number) for number in row["gold"]]
        holding = [number for number in supporting if holds(rows[number]["text"], wanted)]
        questions.append(Asked(row["question"], wanted, set(holding or supporting[-1:])))

    def index(project: Path, without: Set[str]) -> None:
        (project / "input").mkdir(parents=True)
        lines = (json.dumps(row) for number, row in rows.items() if number not in without)
        (project / "input/corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
        answers.index_project(project)

    return Corpus(folder.name, questions, index)


def read_labelled() -> Corpus:
    """Read the labelled passages. All passages that hold an answer count as its evidence."""
    passages = read_half("dev") + read_half("report")
    lines = (LABELLED / "languages.jsonl").read_text(encoding="utf-8").splitlines()
    questions = []
    for row in map(json.loads, lines):
        wanted = set(map(answers.normalize, row["answers"]))
        holding = {p.id for p in passages if holds(p.text, wanted)}
        questions.append(Asked(row["question"], wanted, holding))

    def index(project: Path, without: Set[str]) -> None:
        write_project([p for p in passages if p.id not in without], project)
        index_labelled(project)

    return Corpus("labelled", questions, index)


def read_corpora() -> Iterator[Corpus]:
    """Yield all sets that are there."""
    for name in answers.SETS:
        if (answers.DATA / name).exists():
            yield read_set(answers.DATA / name)
        else:
            print(f"{name} is left out: there is no folder {answers.DATA / name}.")
    yield read_labelled()


def open_without(corpus: Corpus, without: Set[str], project: Path) -> Index:
    """Open the index of a corpus without some documents; make it if it is not there."""
    if not (project / "output/index.json").exists():
        corpus.index(project, without)
    return graphrag_query.open(project / "output")


def ask(index: Index, asked: Asked, method: str) -> Given:
    """Ask a question, and judge the answer."""
    answer = index.search(method, asked.question)
    refused = answer.outcome is Outcome.NO_EVIDENCE
    statement = STATEMENTS.match(answer.text)
    rest = answers.CITATION.sub(" ", answer.text[statement.end() if statement else 0 :])
    said = not refused and holds(rest, asked.wanted)
    n_words = 0 if refused or said else len(rest.split())
    return Given(refused, statement is not None, said, n_words)


def describe(given: Sequence[Given]) -> str:
    """Return the cells of a row of the table."""
    counts = (
        sum(one.refused for one in given),
        sum(one.says_so for one in given),
        sum(one.said for one in given),
        sum(one.said and one.says_so for one in given),
    )
    shares = " | ".join(f"{100 * count / len(given):.1f}" for count in counts)
    return f"{shares} | {sum(one.n_words for one in given) / len(given):.0f}"


def open_cases(corpus: Corpus, folder: Path) -> Iterator[tuple[str, Index, Sequence[Asked]]]:
    """Yield each case, an index of it, and the questions to ask of this index."""
    for number in range(N_INDEXES):
        # All questions decide what an index lacks, so that kept indexes stay valid.
        own = corpus.questions[number::N_INDEXES]
        without = frozenset[str]().union(*(asked.holding for asked in own))
        with open_without(corpus, without, folder / f"{corpus.name}-{number}") as index:
            yield "gone", index, own
    with open_without(corpus, frozenset(), folder / corpus.name) as index:
        yield "present", index, corpus.questions


def measure(corpus: Corpus, folder: Path, questions: Sequence[Asked], method: str) -> None:
    """Ask the questions with and without their evidence, and print both rows."""
    given: dict[str, list[Given]] = {case: [] for case in CASES}
    for case, index, own in open_cases(corpus, folder):
        given[case] += [ask(index, asked, method) for asked in own if asked in questions]
    for case, found in given.items():
        print(f"| {corpus.name} | {len(found)} | {case} | {describe(found)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    parser.add_argument("--first", type=int, default=0, help="number of the first question")
    parser.add_argument("--method", default="local", help="search to measure")
    parser.add_argument("--indexes", type=Path, help="folder of the indexes, which are kept")
    options = parser.parse_args()
    corpora = list(read_corpora())
    print(f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|", sep="\n")
    with tempfile.TemporaryDirectory() as temporary:
        for corpus in corpora:
            questions = corpus.questions[options.first :: options.every]
            measure(corpus, options.indexes or Path(temporary), questions, options.method)


if __name__ == "__main__":
    main()
