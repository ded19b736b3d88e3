"""Lists, questions and messages of the command `graphrag-index resolve`."""

import json
from collections.abc import Callable
from pathlib import Path

from graphrag_index.errors import SettingsError, format_count
from graphrag_index.resolution import decisions_file
from graphrag_index.resolution.decisions_file import (
    Row,
    are_merged_in_index,
    doubtful_pairs,
    read_decisions,
    read_resolution_table,
)
from graphrag_nlp.text.normalize import title_key

APPLIED_BY_RUN = "`graphrag-index run` applies the decision."
_ANSWER_KEYS = "m merge, o merge under the other name, n never, s skip, q quit"


def write_list(output: Path, path: Path, as_json: bool) -> None:
    """Print the merged names and the doubtful pairs, highest score first."""
    merged = read_resolution_table(output, "entity_resolutions")
    doubtful = doubtful_pairs(output, path)
    if as_json:
        content = {"resolved": merged.to_dicts(), "doubtful": doubtful}
        print(json.dumps(content, ensure_ascii=False, indent=1))
        return
    if not merged.is_empty():
        print(f"Resolved ({len(merged):,}):")
    for title, resolved, score, evidence, by in merged.iter_rows():
        why = "" if by == "person" else f", {score:.2f}: {', '.join(evidence)}"
        print(f"  {title} → {resolved} ({by}{why})")
    found = f"Doubtful ({len(doubtful):,}), best first:" if doubtful else "No pair is doubtful."
    print(found, *(f"  {describe_pair(row)}" for row in doubtful), sep="\n")


def describe_pair(row: Row) -> str:
    model = f", a model: {row['model']}" if row["model"] else ""
    one = _describe_name(row["title"], row["type"], row["frequency"])
    other = _describe_name(row["other"], row["other_type"], row["other_frequency"])
    return f"{row['score']:.2f}  {one} | {other}: {', '.join(row['evidence'])}{model}"


def _describe_name(title: str, type_: str, n_units: int) -> str:
    units = f"in {format_count('text_units', n_units)}"
    return f"{title} ({type_}, {units})" if type_ else f"{title} ({units})"


def record_merge(path: Path, names: tuple[str, str]) -> None:
    """Record that two names mean the same thing; the first name becomes the title."""
    title, other = names
    _print_decision(decisions_file.add_merge(path, title, [other]), f"{other} is {title}", path)


def record_never(path: Path, names: tuple[str, str]) -> None:
    """Record that two names never mean the same thing."""
    _print_decision(
        decisions_file.forbid_merge(path, names), f"{' and '.join(names)} stay apart", path
    )


def undo_decision(output: Path, path: Path, one: str, other: str) -> None:
    """Undo a decision about two names.

    A merge by a rule or a model is not in the file. To undo it, the file gets the decision that
    the names must not be merged. Raises SettingsError if the two names are not merged.
    """
    if decisions_file.undo_decisions(path, one, other):
        print(f"Removed the decision about {one} and {other} from {path}: {APPLIED_BY_RUN}")
        return
    if not are_merged_in_index(output, one, other):
        raise SettingsError(
            f"Nothing to undo: neither {path} nor the index has a decision about {one} and "
            f"{other}. `--never` keeps two names apart."
        )
    record_never(path, (one, other))


def _print_decision(is_new: bool, decision: str, path: Path) -> None:
    written = f". Written to {path}: {APPLIED_BY_RUN}"
    print(decision + (written if is_new else f": {path} already has this decision."))


def ask_about_pairs(output: Path, path: Path, read_line: Callable[[str], str] = input) -> None:
    """Ask the user about each doubtful pair; store each decision before the next question."""
    rows = doubtful_pairs(output, path)
    if not rows:
        print("No pair is doubtful.")
        return
    print(f"{len(rows):,} doubtful pairs. {_ANSWER_KEYS}.")
    n_decided = 0
    for number, row in enumerate(rows, 1):
        if row not in doubtful_pairs(output, path):
            continue
        print(f"\n{number}/{len(rows)}  {describe_pair(row)}")
        answer = _read_answer(read_line)
        if answer == "q":
            break
        if answer != "s":
            n_decided += _record_decision(row, answer, path)
    if n_decided:
        print(f"\n{n_decided} decided: {APPLIED_BY_RUN}")


def _record_decision(row: Row, answer: str, path: Path) -> bool:
    """Record a decision about a pair; return False if it contradicts an earlier decision."""
    names = row["title"], row["other"]
    try:
        if answer == "n":
            record_never(path, names)
        else:
            # Replace a name that was merged before by its title.
            titles = read_decisions(path).titles
            one, other = (titles.get(title_key(name), name) for name in names)
            record_merge(path, (one, other) if answer == "m" else (other, one))
    except SettingsError as error:
        print(error)
        return False
    return True


def _read_answer(read_line: Callable[[str], str]) -> str:
    while True:
        try:
            answer = read_line("m/o/n/s/q> ").strip().lower()[:1]
        except EOFError:
            return "q"
        if answer in ("m", "o", "n", "s", "q"):
            return answer
