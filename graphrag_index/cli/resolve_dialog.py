"""Lists, questions and messages of `graphrag-index resolve`."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from graphrag_index.errors import SettingsError, TableError
from graphrag_index.resolution import decisions_edit
from graphrag_index.resolution.decisions_file import Decisions, read_decisions
from graphrag_index.storage.table_store import TableStore
from graphrag_index.text.normalize import title_key

APPLY = "`graphrag-index run` applies it."
_KEYS = "m merge, o merge under the other name, n never, s skip, q quit"

Row = Mapping[str, Any]


def doubtful_pairs(output: Path, decisions: Decisions) -> list[Row]:
    """Return the undecided doubtful pairs of the index, highest score first.

    Raises
    ------
    TableError
        There is no index, or it lacks this table.
    """
    decided = {frozenset(pair) for pair in decisions.never_pairs()}
    titles = {key: title_key(title) for key, title in decisions.titles.items()}
    rows: list[Row] = []
    for row in _table(output, "doubtful_pairs").iter_rows(named=True):
        one, other = title_key(row["title"]), title_key(row["other"])
        same = titles.get(one, one) == titles.get(other, other)
        if frozenset((one, other)) not in decided and not same:
            rows.append(row)
    return rows


def _table(output: Path, name: str) -> pl.DataFrame:
    store = TableStore(output)
    version = store.read_pointer()
    if version is None:
        raise TableError(f"There is no index in {output}: `graphrag-index run` makes it.")
    if name not in version.tables:
        raise TableError(
            f"The index in {output} was made by the workflow {version.workflow} without the step "
            "resolve_entities: a run of one that has it before finalize_graph (and "
            "summarize_descriptions) makes the list."
        )
    return store.scan(name, version.tables[name]).collect()


def write_list(output: Path, path: Path, as_json: bool, out: TextIO) -> None:
    """Print merged names and doubtful pairs, highest score first."""
    merged = _table(output, "entity_resolutions")
    doubtful = doubtful_pairs(output, read_decisions(path))
    if as_json:
        content = {"resolved": merged.to_dicts(), "doubtful": doubtful}
        json.dump(content, out, ensure_ascii=False, indent=1)
        print(file=out)
        return
    if not merged.is_empty():
        print(f"Resolved ({len(merged):,}):", file=out)
    for title, resolved, score, evidence, by in merged.iter_rows():
        why = "" if by == "person" else f", {score:.2f}: {', '.join(evidence)}"
        print(f"  {title} → {resolved} ({by}{why})", file=out)
    if not doubtful:
        print("No pair is doubtful.", file=out)
        return
    print(f"Doubtful ({len(doubtful):,}), best first:", file=out)
    for row in doubtful:
        print(f"  {describe(row)}", file=out)


def describe(row: Row) -> str:
    """Describe a pair on one line."""
    model = f", a model: {row['model']}" if row["model"] else ""
    one, other = (
        f"{row[name]} ({_brackets(row[kind], row[count])})"
        for name, kind, count in (
            ("title", "type", "frequency"),
            ("other", "other_type", "other_frequency"),
        )
    )
    return f"{row['score']:.2f}  {one} | {other}: {', '.join(row['evidence'])}{model}"


def _brackets(kind: str, count: int) -> str:
    units = f"in {count:,} text unit{'s' * (count != 1)}"
    return f"{kind}, {units}" if kind else units


def merge(path: Path, names: Sequence[str], out: TextIO) -> None:
    """Record that names are one thing; the first becomes the title."""
    title, *others = names
    decision = f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} {title}"
    _report(decisions_edit.merge(path, title, others), decision, path, out)


def never(path: Path, names: Sequence[str], out: TextIO) -> None:
    """Record that names are never one thing."""
    _report(decisions_edit.never(path, names), f"{' and '.join(names)} stay apart", path, out)


def undo(output: Path, path: Path, one: str, other: str, out: TextIO) -> None:
    """Undo a decision about two names.

    A merge by a rule or a model is not in the file: then the names are kept apart.

    Raises
    ------
    SettingsError
        Neither the file nor the index has merged the two.
    TableError
        The file has no decision about them, and there is no index.
    """
    if decisions_edit.undo(path, one, other):
        print(f"{path} says nothing of {one} and {other} any more: {APPLY}", file=out)
        return
    if not _are_joined(_table(output, "entity_resolutions"), one, other):
        raise SettingsError(
            f"Nothing to undo: neither {path} nor the index says that {one} and {other} are one, "
            "or are not. `--never` keeps two names apart."
        )
    decided = decisions_edit.never(path, (one, other))
    _report(decided, f"{one} and {other} stay apart", path, out)


def _are_joined(resolved: pl.DataFrame, one: str, other: str) -> bool:
    """Return whether two names have one title in the index."""
    titles = {
        title_key(title): title_key(become)
        for title, become in resolved.select("title", "resolved").iter_rows()
    }
    one, other = title_key(one), title_key(other)
    return one != other and titles.get(one, one) == titles.get(other, other)


def _report(is_new: bool, decision: str, path: Path, out: TextIO) -> None:
    if is_new:
        print(f"{decision}. Written to {path}: {APPLY}", file=out)
    else:
        print(f"{decision}: {path} says so already.", file=out)


def ask(output: Path, path: Path, out: TextIO, read_line: Callable[[str], str] = input) -> None:
    """Ask about doubtful pairs one by one; record each decision at once."""
    rows = doubtful_pairs(output, read_decisions(path))
    if not rows:
        print("No pair is doubtful.", file=out)
        return
    print(f"{len(rows):,} doubtful pairs. {_KEYS}.", file=out)
    n_decided = 0
    for number, row in enumerate(rows, 1):
        if row not in doubtful_pairs(output, read_decisions(path)):
            continue
        print(f"\n{number}/{len(rows)}  {describe(row)}", file=out)
        answer = _answer(read_line)
        if answer == "q":
            break
        if answer != "s":
            n_decided += _decide(row, answer, path, out)
    if n_decided:
        print(f"\n{n_decided} decided: {APPLY}", file=out)


def _decide(row: Row, answer: str, path: Path, out: TextIO) -> bool:
    """Record a decision about a pair; print a contradiction and return False."""
    names = row["title"], row["other"]
    try:
        if answer == "n":
            never(path, names, out)
        else:
            # A name that was merged before is replaced by its title.
            titles = read_decisions(path).titles
            meant = [titles.get(title_key(name), name) for name in names]
            merge(path, meant if answer == "m" else meant[::-1], out)
    except SettingsError as error:
        print(error, file=out)
        return False
    return True


def _answer(read_line: Callable[[str], str]) -> str:
    while True:
        try:
            answer = read_line("m/o/n/s/q> ").strip().lower()[:1]
        except EOFError:
            return "q"
        if answer in ("m", "o", "n", "s", "q"):
            return answer
