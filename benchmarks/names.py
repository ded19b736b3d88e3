"""Compare the names that the workflow `embedded` finds with names marked by hand.

    python benchmarks/names.py [--half dev|report] [--show N]

The passages of a half of benchmarks/labelled are indexed as one corpus, each as a document. A
mention counts as a name unless its entity is a noun phrase. Exact: it has the span of a mark;
overlapping: it shares a character with one. Recall is the share of the marks that are found, as a
name or as a noun phrase; precision is the share of the names that are marks; types is the share of
the marks found exactly whose entity has a type of the mark. Optional marks, and names that overlap
them, count nowhere. `--show` prints what is wrong, up to N of each sort.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from labels import HALVES, KINDS, LANGUAGES, Mark, Passage, index_project, read_half, write_project

NOUN_PHRASE = "noun phrase"
COLUMNS = ("", "marks", "precision", "recall", "types", "precision, overlap", "recall, overlap")


@dataclass(frozen=True)
class Mention:
    """One place where the index found an entity in a passage."""

    start: int
    end: int
    type: str

    def overlaps(self, mark: Mark) -> bool:
        return self.start < mark.end and mark.start < self.end


@dataclass
class Errors:
    """What is wrong in one passage, each as the words of the text."""

    missed: list[str]
    wrong: list[str]
    mistyped: list[str]


def read_mentions(output: Path) -> dict[str, list[Mention]]:
    """Read the mentions of an index, by id of the document."""
    tables = {
        name: pl.read_parquet(output / f"{name}.parquet")
        for name in ("mentions", "entities", "text_units")
    }
    types = tables["entities"]["type"].to_list()
    documents = tables["text_units"]["document_id"].to_list()
    # Sets: overlapping text units have a row each for one place.
    mentions: dict[str, set[Mention]] = {}
    for entity, unit, start, end in tables["mentions"].iter_rows():
        mentions.setdefault(documents[unit], set()).add(Mention(start, end, types[entity]))
    return {id: sorted(found, key=lambda m: (m.start, m.end)) for id, found in mentions.items()}


def score(passage: Passage, mentions: Sequence[Mention]) -> tuple[Counter[str], Errors]:
    """Count the marks and the mentions of one passage, right and wrong."""
    marks = [mark for mark in passage.marks if not mark.optional]
    spans = {(mark.start, mark.end) for mark in marks}
    found = {(mention.start, mention.end): mention for mention in mentions}
    optional = [mark for mark in passage.marks if mark.optional]
    names = [
        mention
        for mention in mentions
        if mention.type != NOUN_PHRASE and not any(map(mention.overlaps, optional))
    ]
    exact = [mark for mark in marks if (mark.start, mark.end) in found]
    typed = [mark for mark in exact if found[mark.start, mark.end].type in mark.types]
    wrong = [name for name in names if (name.start, name.end) not in spans]
    counts = Counter(
        marks=len(marks),
        names=len(names),
        exact_marks=len(exact),
        exact_names=len(names) - len(wrong),
        typed=len(typed),
        overlapping_marks=sum(any(m.overlaps(mark) for m in mentions) for mark in marks),
        overlapping_names=sum(any(map(name.overlaps, marks)) for name in names),
    )
    errors = Errors(
        [passage.text[m.start : m.end] for m in marks if m not in exact],
        [f"{passage.text[m.start : m.end]} ({m.type})" for m in wrong],
        [
            f"{passage.text[m.start : m.end]} ({found[m.start, m.end].type})"
            for m in exact
            if m not in typed
        ],
    )
    return counts, errors


def table(counts: dict[str, Counter[str]]) -> str:
    """Format the figures of groups of passages as a table in Markdown."""

    def percent(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f}" if whole else "-"

    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for group, count in counts.items():
        cells = (
            group,
            str(count["marks"]),
            percent(count["exact_names"], count["names"]),
            percent(count["exact_marks"], count["marks"]),
            percent(count["typed"], count["exact_marks"]),
            percent(count["overlapping_names"], count["names"]),
            percent(count["overlapping_marks"], count["marks"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="dev")
    parser.add_argument("--show", type=int, default=0, metavar="N")
    chosen = parser.parse_args(arguments)
    if chosen.show and chosen.half == "report":
        parser.error("--show is for the half dev: rules must not be tuned on the other half.")
    passages = read_half(chosen.half)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        write_project(passages, project)
        index_project(project)
        mentions = read_mentions(project / "output")
    scored = [(passage, *score(passage, mentions.get(passage.id, []))) for passage in passages]

    def total(belongs: Callable[[Passage], bool]) -> Counter[str]:
        return sum((count for passage, count, _ in scored if belongs(passage)), Counter())

    groups = {"all": total(lambda passage: True)}
    groups |= {kind: total(lambda passage, kind=kind: passage.kind == kind) for kind in KINDS}
    groups |= {
        code: total(lambda passage, code=code: passage.language == code) for code in LANGUAGES
    }
    print(table(groups))
    for sort in ("missed", "wrong", "mistyped") if chosen.show else ():
        print(f"\n{sort}:")
        print_errors(((p.id, getattr(errors, sort)) for p, _, errors in scored), chosen.show)


def print_errors(errors: Iterable[tuple[str, list[str]]], limit: int) -> None:
    """Print the errors of passages, one line a passage, up to a limit of errors."""
    for id, names in errors:
        if names and limit > 0:
            print(f"  {id}: {'; '.join(names[:limit])}")
            limit -= len(names)


if __name__ == "__main__":
    main()
