"""Printed tables: an index, its versions and differences; requests and estimates."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.cli import indent_first_lines
from graphrag_index.errors import format_count, join_names, print_lines
from graphrag_index.llm.ledger import Batch, QuarantinedRequest, StepStatus
from graphrag_index.llm.limits import price_list_date
from graphrag_index.llm.probe import PROBE_TOKENS, Trial
from graphrag_index.llm.protocol import FORMAT_LABELS
from graphrag_index.llm.registry import PurgeCounts
from graphrag_index.pipeline.changes import CHANGE_KINDS, UNCHANGED, Difference, DryRun
from graphrag_index.pipeline.estimate import MIN_PAST_CALLS, Estimate, StepCosts
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.skipped_files import describe_skipped, read_skipped
from graphrag_index.storage.table_store import TableStore, open_index, scan_table
from graphrag_index.storage.versions import Version, VersionOrigin
from graphrag_nlp.text.normalize import display_width, fit_line

TOP_COMMUNITIES = 10
TOP_ENTITIES = 15
# Tables whose row counts are columns of the list of versions, and the headings of the columns.
VERSION_COLUMNS = {
    "documents": "documents",
    "entities": "entities",
    "communities": "communities",
    "community_reports": "reports",
}
MAX_ROW_NAMES = 5  # names of added, removed and changed rows to print
TABLE_WIDTH = 80  # wider tables of requests have narrower gaps
MIN_TOKENS_IN_THOUSANDS = 10_000_000  # estimates from here on are in thousands
MAX_PRINTED_FILES = 20  # maximum number of unread files printed
MAX_PRINTED_REQUESTS = 20  # maximum number of quarantined requests printed
MAX_REASON_CHARS = 120  # maximum length of a printed reason of a server
_Rows = Sequence[tuple[str | int | None, ...]]
MAX_PRINTED_NAMES = 5  # maximum number of printed documents per kind of change, and of unread files


def align_columns(rows: Sequence[Sequence[str]], left: Sequence[int], gap: int = 2) -> list[str]:
    """Return rows as lines; align the columns in `left` to the left, others to the right."""
    columns = []
    for number, cells in enumerate(zip(*rows, strict=True)):
        widths = [display_width(cell) for cell in cells]
        spaces = [" " * (max(widths) - width) for width in widths]
        pairs = zip(cells, spaces, strict=True)
        columns.append([cell + space if number in left else space + cell for cell, space in pairs])
    return [(" " * gap).join(row).rstrip() for row in zip(*columns, strict=True)]


def write_overview(output: Path, out: TextIO) -> None:
    """Print an overview of an index."""
    store, version = open_index(output)
    by = f"written by the workflow {version.workflow} of graphrag-index {version.program}"
    head = f"Version {version.number} of {store.place}, {by}"
    sections = [format_section(*section) for section in _overview_sections(store, version)]
    out.write("\n\n".join([head, *filter(None, sections)]) + "\n")


def format_section(title: str, header: Sequence[str], rows: _Rows) -> str:
    """Format a small table, with columns of numbers at the right; empty without rows."""
    left = [n for n in range(len(header)) if not all(isinstance(row[n], int) for row in rows)]
    cells = [
        [f"{cell:,}" if isinstance(cell, int) else fit_line(cell or "") for cell in row]
        for row in rows
    ]
    lines = align_columns([header, *cells], left)
    return "\n".join([title, *(f"  {line}" for line in lines)]) if cells else ""


def _overview_sections(
    store: TableStore, version: Version
) -> Iterator[tuple[str, Sequence[str], _Rows]]:
    from rich.filesize import decimal

    for title, kind in (("Tables", "public"), ("Vectors", "vectors")):
        tables = {name: version.tables.get(name) for name, t in TABLES.items() if t.kind == kind}
        yield title, ("table", "rows"), [(name, t.rows) for name, t in tables.items() if t]
    size = sum(
        path.lstat().st_size
        for path in store.output.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    folder = store.output.name if store.working_copy is None else "copy of the bucket"
    yield "On disk", ("folder", "size"), [(folder, decimal(size))]

    counts = scan_table(store, version, "documents").group_by("language").len()
    languages = counts.sort("len", "language", descending=[True, False])
    yield "Languages", ("language", "documents"), _collect_rows(languages)

    communities = scan_table(store, version, "communities")
    levels = communities.group_by("level").agg(pl.len(), pl.col("size").sum()).sort("level")
    yield "Levels", ("level", "communities", "entities"), _collect_rows(levels)
    reports = scan_table(store, version, "community_reports").select("community", report="title")
    largest = (
        communities.filter(pl.col("level") == 0)
        .sort("size", "community", descending=[True, False])
        .head(TOP_COMMUNITIES)
        .join(reports, on="community", how="left", maintain_order="left")
        # Without reports, use the title of the community.
        .select("community", "size", pl.coalesce("report", "title"))
    )
    header: tuple[str, ...] = ("community", "entities", "title of the report")
    yield "Largest communities of level 0", header, _collect_rows(largest)
    entities = (
        scan_table(store, version, "entities")
        .sort("degree", "frequency", "human_readable_id", descending=[True, True, False])
        .head(TOP_ENTITIES)
        .select("title", "type", "degree", "frequency")
    )
    header = ("entity", "type", "neighbours", "text units")
    yield "Main entities", header, _collect_rows(entities)


def _collect_rows(table: pl.LazyFrame) -> _Rows:
    return table.collect(engine="streaming").rows()


def version_as_json(version: Version, current: int) -> dict[str, object]:
    made = version.made
    return {
        "version": version.number,
        "current": version.number == current,
        "date": made.date if made else None,
        "workflow": version.workflow,
        "rows": {n: t.rows for n, t in version.tables.items() if n in VERSION_COLUMNS},
        "steps_run": list(made.steps_run) if made else None,
        "tables_of": made.tables_of if made else None,
        **_costs_as_json(made),
    }


def _costs_as_json(made: VersionOrigin | None) -> dict[str, object]:
    """Return the costs of a version for JSON; unknown costs are null."""
    names = ("calls", "prompt_tokens", "completion_tokens", "cost")
    return {name: getattr(made, name, None) for name in names}


def write_versions(versions: Sequence[Version], current: int, out: TextIO) -> None:
    """Print a line for each version; a star marks the current version.

    Calls and costs are columns only if a version asked a model.
    """
    costs = (
        ("calls", "$") if any(version.made and version.made.calls for version in versions) else ()
    )
    heading = ("version", "made", *VERSION_COLUMNS.values(), *costs, "what ran")
    rows = [_version_cells(one, one.number == current, bool(costs)) for one in versions]
    print("\n".join(align_columns([heading, *rows], left=[len(heading) - 1])), file=out)


def describe_state(store: TableStore, option: str, every: bool = False) -> list[str]:
    """Describe the current version, its unread and skipped files, and an unfinished run."""
    from graphrag_index.pipeline.history import is_locked

    version = store.read_pointer()
    if version is None:
        lines = [f"There is no index in {store.place} yet."]
    else:
        made = f", made {version.made.date[:16].replace('T', ' ')} UTC" if version.made else ""
        lines = [f"Version {version.number} of {store.place}{made}, workflow {version.workflow}."]
        unread = version.tables.get("unread_files")
        if unread is not None and unread.rows:
            what = "file or record was" if unread.rows == 1 else "files or records were"
            lines.append(f"{unread.rows:,} {what} not read: the next run lists them again.")
            if every:
                rows = store.scan("unread_files", unread).collect().rows()
                lines += [f"  {path}: {reason}" for path, reason in rows]
        skipped = read_skipped(store, version)
        if skipped:
            lines.append(describe_skipped(skipped))
            lines += [f"  {one.path}: {one.reason}" for one in skipped if every]
    done = [record.name for record in store.read_journal(store.next_number())]
    if is_locked(store):
        last = f"; the last finished step is {done[-1]}" if done else ""
        lines.append(f"A run is writing to it now{last}.")
    elif done:
        lines.append(
            f"The last run did not finish: `graphrag-index run{option}` continues after the step "
            f"{done[-1]}."
        )
    return lines


def _version_cells(version: Version, is_current: bool, with_costs: bool) -> tuple[str, ...]:
    tables, made = version.tables, version.made
    number = f"{version.number}{'*' if is_current else ' '}"
    counts = [f"{tables[name].rows:,}" if name in tables else "-" for name in VERSION_COLUMNS]
    if made is None:
        return (number, "-", *counts, *("-", "-") * with_costs, "-")
    if made.tables_of is not None:
        ran = f"rollback to version {made.tables_of}"
    elif len(made.steps_run) == len(version.steps):
        ran = "all steps"
    else:
        ran = join_names(made.steps_run, 2)
    date = made.date[:16].replace("T", " ")
    cost = "?" if made.cost is None else f"{made.cost:.4f}"
    costs = (f"{made.calls:,}", cost) if with_costs else ()
    return (number, date, *counts, *costs, ran)


def difference_as_json(
    before: Version, after: Version, found: Mapping[str, Difference]
) -> dict[str, object]:
    old, new = ({"version": one.number, **_costs_as_json(one.made)} for one in (before, after))
    tables = {
        name: {kind: {"count": n, "names": one.names[kind]} for kind, n in one.counts.items()}
        for name, one in found.items()
    }
    return {"before": old, "after": new, "tables": tables}


def write_difference(
    before: Version, after: Version, found: Mapping[str, Difference], out: TextIO
) -> None:
    """Print how many rows of each table differ, with the names of a few rows."""
    print(f"From version {before.number} to version {after.number}:", file=out)
    for name, one in found.items():
        nothing = ": no difference" * (not any(one.counts.values()))
        print(f"\n{name.replace('_', ' ')}{nothing}", file=out)
        for kind, n in one.counts.items():
            if n:
                print(f"  {n:,} {kind}: {join_names(one.names[kind], MAX_ROW_NAMES)}", file=out)
    print("", _describe_cost(before), _describe_cost(after), sep="\n", file=out)


def _describe_cost(version: Version) -> str:
    made = version.made
    if made is None:
        return f"The cost of version {version.number} was not recorded."
    if not made.calls:
        return f"Version {version.number} asked no model."
    calls = f"{format_count('calls', made.calls)} to models"
    tokens = f"{made.prompt_tokens:,} prompt + {made.completion_tokens:,} reply tokens"
    price = "at an unknown price" if made.cost is None else f"{made.cost:.4f} dollars"
    return f"Version {version.number}: {calls}, {tokens}, {price}."


def describe_purge(purged: PurgeCounts, root: Path, option: str) -> str:
    """Describe what a purge has deleted, and what still holds deleted text."""
    from graphrag_evaluation import EVALUATIONS, TUNING

    deleted = format_count("requests", purged.n_deleted)
    lines = [
        f"Purged: {deleted} deleted, {purged.n_kept:,} kept. Earlier versions still hold what was "
        f"deleted: `graphrag-index gc --keep 1{option}` deletes them."
    ]
    folders = [str(root / name) for name in (EVALUATIONS, TUNING) if (root / name).exists()]
    if folders:
        lines.append(
            f"Passages and replies of evaluations and proposals are in {' and '.join(folders)}: "
            "delete there what is about deleted documents."
        )
    return "\n".join(lines)


def write_status(
    rows: Sequence[StepStatus],
    quarantined: Sequence[QuarantinedRequest],
    out: TextIO,
    batches: Sequence[Batch] = (),
) -> None:
    """Print requests by step and model, their sum, open batches and quarantined requests."""
    if not rows:
        print_lines("No model was asked.", out)
        return
    counts = ("done", "open", "quarantined", "prompt_tokens", "completion_tokens")
    cells = _format_requests(rows, counts, ["cost"])
    for line, row in zip(cells, rows, strict=False):
        if row.cached_tokens:
            line[4] += f" ({row.cached_tokens:,} cached)"
    headings = ["done", "open", "quarantined", "prompt", "reply", "$"]
    _print_table(headings, cells, rows, out)
    if batches:
        print_lines("\n".join(("", *map(describe_batch, batches))), out)
    if quarantined:
        print_lines(f"\n{describe_quarantined(quarantined)}", out, indent=2)


def write_estimate(estimate: Estimate, out: TextIO) -> None:
    """Print the requests of a run by step and model, their sum, and the assumptions."""
    if estimate.lines:
        write_requests(estimate, out)
    if estimate.n_pictures:
        print_lines(f"{estimate.describe_pictures()} to read them.", out)
    if estimate.n_sampled < estimate.n_documents:
        hint = " Only then are the summaries and reports recognized that were paid before."
        sample = f"Sampled {estimate.n_sampled:,} of {estimate.n_documents:,} documents evenly"
        everything = f"--sample {estimate.n_documents} reads all.{hint * estimate.has_past}"
        print_lines(f"{sample}: {everything}", out)


def write_requests(estimate: Estimate, out: TextIO) -> None:
    """Print the estimated requests by step and model, and their sum."""
    lines, unit = estimate.lines, ""
    if sum(line.prompt_tokens + line.reply_tokens for line in lines) >= MIN_TOKENS_IN_THOUSANDS:
        unit = "k "
        lines = tuple(
            replace(
                line,
                prompt_tokens=round(line.prompt_tokens / 1_000),
                reply_tokens=round(line.reply_tokens / 1_000),
            )
            for line in lines
        )
    counts = ("n_answered", "n_to_ask", "prompt_tokens", "reply_tokens")
    most = sum(line.high or 0 for line in lines)
    digits = 4 if most < 10 else 2 if most < 100 else 0
    cells = _format_requests(lines, counts, ["cost", "low", "high"], digits)
    headings = ["done", "open", f"{unit}prompt", f"{unit}reply", "$", "low", "high"]
    _print_table(headings, cells, lines, out)
    if guessed := [line for line in lines if line.n_guessed]:
        ranges = ["{} {:,} to {:,}".format(line.step, *line.bound_requests()) for line in guessed]
        print_lines(
            "Requests about text units are counted exactly. Requests that depend on the names that "
            f"the model will find are a guess, by names that rules find: {join_names(ranges)}.",
            out,
        )
    if any(line.step == "describe_figures" and line.n_to_ask for line in lines):
        print_lines("Tokens of figures are approximate: they are counted as for GPT-4o.", out)
    if not all(line.replies_are_known for line in lines):
        print_lines(
            f"Before a step has made {MIN_PAST_CALLS} calls, the length of its replies is a guess: "
            "low assumes half of it, high twice as much. The reasoning of a model comes on top.",
            out,
        )


def _format_requests(
    rows: Sequence[StepStatus | StepCosts],
    counts: Sequence[str],
    costs: Sequence[str],
    digits: int = 4,
) -> list[list[str]]:
    """Format rows as cells: step, counts, costs. Add a row of sums to several rows."""
    lines = [
        [
            row.step,
            *(f"{getattr(row, name):,}" for name in counts),
            *("?" if (c := getattr(row, name)) is None else f"{c:,.{digits}f}" for name in costs),
        ]
        for row in rows
    ]
    if len(rows) > 1:
        sums = [f"{sum(getattr(row, name) for row in rows):,}" for name in counts]
        for name in costs:
            known = [cost for row in rows if (cost := getattr(row, name)) is not None]
            sums.append(f"{sum(known):,.{digits}f}" + "+?" * (len(known) < len(rows)))
        lines.append(["all", *sums])
    return lines


def _print_table(
    headings: list[str], cells: list[list[str]], rows: Sequence[StepStatus | StepCosts], out: TextIO
) -> None:
    """Print a table of requests, with each model on a line above its steps.

    Question marks (unknown prices) are explained below the table.
    """
    table = [["step", *headings], *cells]
    lines = align_columns(table, left=[0])
    if max(map(len, lines)) > TABLE_WIDTH:
        lines = align_columns(table, left=[0], gap=1)
    printed = lines[:1]
    for number, (line, row) in enumerate(zip(lines[1:], rows, strict=False)):
        if not number or row.model != rows[number - 1].model:
            printed.append(f"{row.model}:")
        printed.append(line)
    print("\n".join([*printed, *lines[1 + len(rows) :]]), file=out)
    if any(row.cost is None for row in rows):
        print_lines(
            f"? means that the price list of {price_list_date()} lacks the model: set `price` of "
            "this model.",
            out,
        )


def describe_batch(batch: Batch) -> str:
    """Describe a batch and its last known state."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(batch.submitted))
    if not batch.id:
        return f"A batch of {batch.step} ({batch.model}), prepared {when}, is not submitted yet."
    status = batch.status.replace("_", " ") or "submitted"
    return (
        f"Batch {batch.id} of {batch.step} ({batch.model}), submitted {when}: {status}, "
        f"{batch.n_done:,} of {batch.n_requests:,} requests are done."
    )


def describe_quarantined(quarantined: Sequence[QuarantinedRequest]) -> str:
    """Return a line for each quarantined request, but at most `MAX_PRINTED_REQUESTS` lines."""
    what = "1 request has" if len(quarantined) == 1 else f"{len(quarantined)} requests have"
    requests = [f"{row.step}, {row.unit}: {row.reason}" for row in quarantined]
    hint = ": `graphrag-index status --all` lists them."
    lines = indent_first_lines(requests, MAX_PRINTED_REQUESTS, hint)
    return "\n".join([f"{what} no valid reply:", *lines])


def describe_trials(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each tiny request to a server, and a line with their number."""
    lines = []
    for trial in trials:
        label = FORMAT_LABELS.get(trial.name, trial.name)
        reason = trial.reason[:MAX_REASON_CHARS]
        result = f"refused ({reason}); further requests omit it" if reason else "works"
        lines.append(f"  {label:<22} {trial.seconds:>5.1f} s  {result}")
    n_requests = sum(trial.n_requests for trial in trials)
    return [*lines, f"  {n_requests} requests of at most {PROBE_TOKENS} tokens for each reply"]


def write_dry_run(found: DryRun, out: TextIO) -> None:
    """Print changes of the input, the steps that a run would execute, and their requests."""
    is_update = found.version is not None
    if not found.run:
        place = f"{found.place} is up to date (version {found.version})"
        print_lines(f"Nothing would change: {place}.", out)
    elif found.changes is not None:
        since = f"Since version {found.version}" if is_update else "There is no index yet"
        print_lines(f"{since}: {found.changes}, {found.changes.count(UNCHANGED):,} unchanged.", out)
        for kind in CHANGE_KINDS:
            names = found.changes.names(kind)
            if names:
                print_lines(f"  {kind:<8} {join_names(names, MAX_PRINTED_NAMES)}", out)
    elif found.loader in found.run:
        print_lines("The index lacks a list of its documents: a run would read all again.", out)
    elif found.loader in found.kept:
        print_lines("The input has not changed.", out)
    if found.unread:
        what = format_count("files or records", len(found.unread))
        print_lines(f"{what} would not be read:", out)
        files = [f"{path}: {reason}" for path, reason in found.unread]
        print_lines("\n".join(indent_first_lines(files, MAX_PRINTED_NAMES)), out, indent=2)
    if not found.run:
        return
    print_lines(f"Steps that would run: {', '.join(found.run)}.", out)
    if found.kept:
        print_lines(f"Steps whose input has not changed: {', '.join(found.kept)}.", out)
    if found.pictures and (found.estimate is None or not found.estimate.n_pictures):
        print_lines(f"{found.pictures} to read them.", out)
    if found.estimate is None:
        print_lines("None of these steps asks a model: the run costs nothing.", out)
        return
    print(file=out)
    write_estimate(found.estimate, out)


def dry_run_as_json(found: DryRun) -> str:
    changes, documents = found.changes, None
    if changes is not None:
        documents = {
            k: {"count": changes.count(k), "names": changes.names(k)} for k in CHANGE_KINDS
        }
    content = {
        "version": found.version,
        "documents": documents,
        "unread": [{"path": path, "reason": reason} for path, reason in found.unread],
        "pictures": found.pictures,
        "steps": {"run": found.run, "kept": found.kept},
        "requests": [asdict(line) for line in found.estimate.lines] if found.estimate else [],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def estimate_as_json(found: Estimate) -> str:
    return json.dumps(asdict(found), indent=2, ensure_ascii=False)


def describe_unread_files(unread: Sequence[tuple[str, str]], has_skipped: bool) -> str:
    """List the first files that were not read, with the reasons."""
    what = "1 file or record was" if len(unread) == 1 else f"{len(unread)} files or records were"
    files = [f"{path}: {reason}" for path, reason in unread]
    lines = indent_first_lines(files, MAX_PRINTED_FILES, ", all in the table unread_files.")
    others = "All others but the skipped files" if has_skipped else "All others"
    end = f"{others} are in the index. Correct or remove these files and run again."
    return "\n".join([f"\n{what} not read:", *lines, end])
