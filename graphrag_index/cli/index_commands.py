"""The commands that show, check and change an index and its versions."""

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Json, Root, Set, load_project_settings, open_store, root_option
from graphrag_index.errors import ExitCode, SettingsError, format_count, print_lines
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.resolution.decisions_file import Row

_APPLIED_BY_RUN = "`graphrag-index run` applies the decision."
_two_names_option = partial(typer.Option, metavar="A B")


def show(
    root: Root = Path(),
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", help="Write the explorer as one page with the index.", metavar="FILE"
        ),
    ] = None,
    set_: Set = None,
) -> None:
    """Print table sizes, disk use, the largest communities and the main entities."""
    output = locate_output(root, load_project_settings(root, set_))
    if html is None:
        from graphrag_index.cli.printed_tables import write_overview

        write_overview(output, sys.stdout)
        return
    from graphrag_index.export.explorer_page import write_page

    part = write_page(output, html, name=root.resolve().name)
    print_lines(f"Wrote {html}: {part}.")


def check(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder of an index or of Microsoft GraphRAG; default: the index of the project.",
        ),
    ] = None,
    root: Root = Path(),
    as_json: Json = False,
    as_of: Annotated[
        int | None, typer.Option("--as-of", min=1, help="Check this version.", metavar="VERSION")
    ] = None,
    set_: Set = None,
) -> None:
    """Check an index for inconsistencies and missing parts, and print statistics."""
    settings = load_project_settings(root, set_, needed=folder is None)
    from graphrag_index.cli.terminal import temporary_bar
    from graphrag_index.health.checked_index import open_for_check, open_own
    from graphrag_index.health.checks import check_index
    from graphrag_index.health.health_report import LINE_WIDTH, report_as_text
    from graphrag_index.health.health_report import report_as_json as to_json
    from graphrag_index.llm.local.local_models import find_vector_identity

    if folder is None:
        index = open_own(locate_output(root, settings), as_of)
        if as_of is None:
            index.question_model = find_vector_identity(settings)
    else:
        index = open_for_check(folder, as_of)
    with temporary_bar(sys.stderr, "check") as progress:
        health = check_index(index, settings.check, progress)
    if as_json:
        _print_json(to_json(health), indent=1)
    else:
        columns = max(shutil.get_terminal_size().columns, 40)
        print(report_as_text(health, columns if sys.stdout.isatty() else LINE_WIDTH), end="")
    if health.failed:
        raise typer.Exit(ExitCode.FAILED)


def resolve(
    root: Root = Path(),
    merge: Annotated[
        tuple[str, str] | None,
        _two_names_option("--merge", help="Merge two names; the first becomes the title."),
    ] = None,
    never: Annotated[
        tuple[str, str] | None, _two_names_option("--never", help="Never merge two names.")
    ] = None,
    undo: Annotated[
        tuple[str, str] | None, _two_names_option("--undo", help="Undo a decision about two names.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    set_: Set = None,
) -> None:
    """Decide about two names, or list merged names and doubtful pairs; a run applies decisions."""
    from graphrag_index.resolution.decisions_file import add_merge

    settings = load_project_settings(root, set_)
    path, output = root / settings.resolve_entities.file, locate_output(root, settings)
    if sum((merge is not None, never is not None, undo is not None, as_json)) > 1:
        raise typer.BadParameter("use only one of --merge, --never, --undo and --json.")
    if merge is not None:
        title, other = merge
        _print_decision(add_merge(path, title, [other]), f"{other} is {title}", path)
    elif never is not None:
        _record_never(path, never)
    elif undo is not None:
        _undo_decision(output, path, *undo)
    else:
        _write_resolutions(output, path, as_json)


def _write_resolutions(output: Path, path: Path, as_json: bool) -> None:
    """Print the merged names and the doubtful pairs, highest score first."""
    from graphrag_index.resolution.decisions_file import doubtful_pairs, read_resolution_table

    merged = read_resolution_table(output, "entity_resolutions")
    doubtful = doubtful_pairs(output, path)
    if as_json:
        _print_json({"resolved": merged.to_dicts(), "doubtful": doubtful}, indent=1)
        return
    if not merged.is_empty():
        print(f"Resolved ({len(merged):,}):")
    for title, resolved, score, evidence, by in merged.iter_rows():
        why = "" if by == "person" else f", {score:.2f}: {', '.join(evidence)}"
        print(f"  {title} → {resolved} ({by}{why})")
    found = f"Doubtful ({len(doubtful):,}), best first:" if doubtful else "No pair is doubtful."
    print(found, *(f"  {_describe_pair(row)}" for row in doubtful), sep="\n")


def _describe_pair(row: "Row") -> str:
    model = f", a model: {row['model']}" if row["model"] else ""
    one = _describe_name(row["title"], row["type"], row["frequency"])
    other = _describe_name(row["other"], row["other_type"], row["other_frequency"])
    return f"{row['score']:.2f}  {one} | {other}: {', '.join(row['evidence'])}{model}"


def _describe_name(title: str, type_: str, n_units: int) -> str:
    units = f"in {format_count('text_units', n_units)}"
    return f"{title} ({type_}, {units})" if type_ else f"{title} ({units})"


def _record_never(path: Path, names: tuple[str, str]) -> None:
    """Record that two names never mean the same thing."""
    from graphrag_index.resolution.decisions_file import forbid_merge

    _print_decision(forbid_merge(path, names), f"{' and '.join(names)} stay apart", path)


def _undo_decision(output: Path, path: Path, one: str, other: str) -> None:
    """Undo a decision about two names.

    A merge by a rule or a model is not in the file. To undo it, the file gets the decision that
    the names must not be merged. Raises SettingsError if the two names are not merged.
    """
    from graphrag_index.resolution.decisions_file import are_merged_in_index, undo_decisions

    if undo_decisions(path, one, other):
        print(f"Removed the decision about {one} and {other} from {path}: {_APPLIED_BY_RUN}")
        return
    if not are_merged_in_index(output, one, other):
        raise SettingsError(
            f"Nothing to undo: neither {path} nor the index has a decision about {one} and "
            f"{other}. `--never` keeps two names apart."
        )
    _record_never(path, (one, other))


def _print_decision(is_new: bool, decision: str, path: Path) -> None:
    written = f". Written to {path}: {_APPLIED_BY_RUN}"
    print(decision + (written if is_new else f": {path} already has this decision."))


def versions(root: Root = Path(), as_json: Json = False, set_: Set = None) -> None:
    """List the versions of the index, with their dates, sizes and costs."""
    from graphrag_index.cli.printed_tables import version_as_json, write_versions
    from graphrag_index.pipeline.history import current_version

    store = open_store(root, set_)
    current = current_version(store).number
    found = [store.read_version(number) for number in store.versions()]
    if as_json:
        _print_json([version_as_json(version, current) for version in found])
    else:
        write_versions(found, current, sys.stdout)


def diff(
    before: Annotated[int, typer.Argument(help="Number of the first version.", metavar="A")],
    after: Annotated[
        int | None,
        typer.Argument(help="Number of the second version; default: the current.", metavar="B"),
    ] = None,
    root: Root = Path(),
    as_json: Json = False,
    set_: Set = None,
) -> None:
    """Print the rows added, removed and changed between two versions."""
    from graphrag_index.cli.printed_tables import difference_as_json, write_difference
    from graphrag_index.pipeline.changes import compare_versions
    from graphrag_index.pipeline.history import current_version

    store = open_store(root, set_)
    new = current_version(store)
    old = store.read_version(before)
    if after is not None:
        new = store.read_version(after)
    found = compare_versions(store, old, new)
    if as_json:
        _print_json(difference_as_json(old, new, found))
    else:
        write_difference(old, new, found, sys.stdout)


def rollback(
    number: Annotated[int, typer.Argument(help="Number of the version to restore.", metavar="N")],
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Restore the tables of an earlier version, as a new version; nothing is lost."""
    from graphrag_index.pipeline.history import current_version, roll_back

    store = open_store(root, set_)
    before = current_version(store).number
    version = roll_back(store, number)
    if version.number == before:
        print(f"Nothing changed: version {before} already has the tables of version {number}.")
        return
    print(f"Restored the tables of version {number} as version {version.number}.")
    print(
        "The next `graphrag-index run` updates them to the current input and settings. "
        f"`graphrag-index rollback {before}{root_option(root)}` undoes this rollback."
    )


def gc(
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="Number of newest versions to keep.", metavar="N")
    ] = 5,
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Delete old versions, with the files and vectors that only they use."""
    from graphrag_index.pipeline.history import collect_garbage

    freed = collect_garbage(open_store(root, set_), keep)
    gone, kept = (", ".join(map(str, numbers)) for numbers in (freed.deleted, freed.kept))
    what = f"version{'s' * (len(freed.deleted) > 1)} {gone}" if gone else "no version"
    print(f"Deleted {what}; freed {freed.n_bytes / 1e6:,.1f} MB. Kept versions: {kept}.")
    if freed.in_use:
        print(
            f"{len(freed.in_use)} files are in use by another program, such as "
            f"{freed.in_use[0]}: the next gc deletes them.",
            file=sys.stderr,
        )


def _print_json(content: object, indent: int = 2) -> None:
    import json

    print(json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False))
