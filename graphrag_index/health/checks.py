"""All checks of an index, in the order of the report, with their limits."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import (
    CITED_COLUMNS,
    EXPLANATIONS,
    MAX_EXAMPLES,
    NEEDED_COLUMNS,
    NOT_CHECKED,
    REFERENCES,
    SINGULAR,
    TEXTS,
    CheckedIndex,
    CheckResult,
    Finding,
    count_rows,
    explode_lists,
    find_defects,
    name_row,
)
from graphrag_index.health.index_statistics import IndexStatistics, compute_statistics
from graphrag_index.microsoft.read_files import MicrosoftVectors
from graphrag_index.schema.settings.models import describe_vector_identity
from graphrag_index.schema.settings.step_sections import Check as Limits
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, READING, ROWS_OF
from graphrag_index.step import Progress, Silent
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.citations import find_citations


class CheckOutcome(NamedTuple):
    """The result of one check, and the limit of its findings."""

    name: str
    result: CheckResult
    limit: float
    is_share: bool  # the limit is a share (0–1) of the checked rows, not a count

    @property
    def title(self) -> str:
        return TEXTS["check_titles"][self.name]

    @property
    def failed(self) -> bool:
        count, of = self.result.count, self.result.of or 0
        return count > (self.limit * of if self.is_share else self.limit)


@dataclass(frozen=True)
class IndexHealth:
    """The outcomes of all checks of an index, and the statistics of the index."""

    index: CheckedIndex
    outcomes: tuple[CheckOutcome, ...]
    statistics: IndexStatistics
    skipped: tuple[str, ...]  # sentences on tables and columns that were not checked

    @property
    def failed(self) -> bool:
        return any(outcome.failed for outcome in self.outcomes)


def check_index(
    index: CheckedIndex, limits: Limits, progress: Progress | None = None
) -> IndexHealth:
    """Run all checks of an index; a table that cannot be read becomes a finding."""
    progress = progress or Silent()
    try:
        return _run_checks(index, limits, progress)
    except (pl.exceptions.PolarsError, OSError):
        # The error does not name the damaged table: read all tables to find it.
        if not index.leave_out_damaged_tables():
            raise
        return _run_checks(index, limits, progress)


def _run_checks(index: CheckedIndex, limits: Limits, progress: Progress) -> IndexHealth:
    vectors = read_embedded_tables(index)
    oversized = partial(find_oversized_communities, max_size=limits.oversized_above)
    checks: Mapping[str, Callable[[CheckedIndex], CheckResult]] = {
        "dangling_ids": find_dangling_ids,
        "duplicates": find_duplicate_rows,
        "unresolved_citations": find_unresolved_citations,
        "missing_vectors": lambda _: find_missing_vectors(vectors),
        "stale_vectors": partial(find_stale_vectors, tables=vectors),
        "stale_search_tables": find_stale_search_tables,
        "uncovered_entities": find_uncovered_entities,
        "uncovered_documents": find_uncovered_documents,
        "missing_reports": find_missing_reports,
        "empty_reports": find_empty_reports,
        "oversized_communities": oversized,
        "equal_documents": find_equal_documents,
    }
    progress.start(len(checks) + 1, "checks")
    outcomes = []
    for name, check in checks.items():
        limit = getattr(limits, f"max_{name}")
        outcomes.append(CheckOutcome(name, check(index), limit, isinstance(limit, float)))
        progress.advance()
    statistics = compute_statistics(index)
    progress.advance()
    damaged = {finding.table for finding in index.damaged}
    readable = {*index.tables, *index.search_tables, *index.vectors}
    result = CheckResult(len(damaged | readable), index.damaged)
    unreadable = CheckOutcome("unreadable_tables", result, 0, False)
    skipped = (*index.missing_parts(), *index.notes)
    return IndexHealth(index, (unreadable, *outcomes), statistics, skipped)


_REPORTS_PER_BATCH = 4_096
_REPORT_TEXT_COLUMNS = ("full_content", "summary")  # preferred column first
_UNITS_OF_ENTITIES = ("entities", "id", "text_unit_ids")


def find_uncovered_entities(index: CheckedIndex) -> CheckResult:
    """Find entities without a community, and entities whose communities have no report."""
    if not (index.has("entities", "id") and index.has("communities", "community", "entity_ids")):
        return NOT_CHECKED
    label = "title" if index.has("entities", "title") else index.label_column("entities")
    covered = _hash_member_ids(index.tables["communities"])
    reported = _hash_member_ids(_communities_with_report(index))
    return _find_uncovered_rows(index, "entities", label, covered, reported)


def find_uncovered_documents(index: CheckedIndex) -> CheckResult:
    """Find documents without a community, and documents whose communities have no report."""
    units = index.text_unit_documents()
    label = index.first_column("documents", "path", "title", "id")
    if units is None or label is None or not index.has("documents", "id"):
        return NOT_CHECKED
    by_member = index.has("communities", "entity_ids") and index.has(*_UNITS_OF_ENTITIES)
    if not (by_member or index.has("communities", "text_unit_ids")):
        return NOT_CHECKED
    covered = _hash_document_ids(index, index.tables["communities"], units)
    reported = _hash_document_ids(index, _communities_with_report(index), units)
    return _find_uncovered_rows(index, "documents", label, covered, reported)


def _find_uncovered_rows(
    index: CheckedIndex, table: str, label: str, covered: pl.LazyFrame, reported: pl.LazyFrame
) -> CheckResult:
    """Find rows that are in no community, and rows only in communities without a report.

    The column `key` has hashed ids: in `covered` of the rows in communities, in `reported` of the
    rows in communities with a report.
    """
    rows = index.tables[table].select(label=pl.col(label), key=pl.col("id").hash())
    n_rows = count_rows(rows)
    outside = rows.join(covered, on="key", how="anti")
    means = EXPLANATIONS[f"uncovered_{table}"]
    findings = find_defects(outside, table, n_rows, means, "{label}")
    if _has_reports(index):
        means = EXPLANATIONS["only_unreported"].replace("ROWS", table)
        silent = rows.join(reported, on="key", how="anti").join(covered, on="key", how="semi")
        findings += find_defects(silent, "community_reports", n_rows, means, "{label}")
    return CheckResult(n_rows, findings)


def _hash_member_ids(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return the hashed ids of the entities in these communities, in the column `key`."""
    return explode_lists(communities.select(key="entity_ids"), "key").select(pl.col("key").hash())


def _has_reports(index: CheckedIndex) -> bool:
    return index.has("community_reports", "community") and index.has("communities", "community")


def _communities_with_report(index: CheckedIndex) -> pl.LazyFrame:
    """Return the communities with a report; all communities if there are no reports."""
    communities = index.tables["communities"]
    if not _has_reports(index):
        return communities
    reports = index.tables["community_reports"].select("community")
    return communities.join(reports, on="community", how="semi")


def _hash_document_ids(
    index: CheckedIndex, communities: pl.LazyFrame, units: pl.LazyFrame
) -> pl.LazyFrame:
    """Return the hashed ids of the documents of these communities, in the column `key`.

    A document belongs to a community that has one of its text units, or an entity in one.
    """
    named = []
    if index.has("communities", "text_unit_ids"):
        named.append(communities)
    if index.has("communities", "entity_ids") and index.has(*_UNITS_OF_ENTITIES):
        entities = index.tables["entities"].with_columns(key=pl.col("id").hash())
        named.append(entities.join(_hash_member_ids(communities), on="key", how="semi"))
    covered = [explode_lists(rows.select(unit="text_unit_ids"), "unit") for rows in named]
    hashed = pl.concat(covered).select(pl.col("unit").hash())
    return units.join(hashed, on="unit", how="semi").select("key").unique()


def find_oversized_communities(index: CheckedIndex, max_size: int) -> CheckResult:
    """Find communities without children that have more than `max_size` entities."""
    members = index.first_column("communities", "entity_ids", "size")
    if members is None or not index.has("communities", "community"):
        return NOT_CHECKED
    size = pl.col(members).list.n_unique() if members == "entity_ids" else pl.col(members)
    communities = index.tables["communities"]
    leaves = communities.select("community", n=size.cast(pl.Int64))
    if index.has("communities", "parent"):
        parents = communities.select(community="parent").unique()
        leaves = leaves.join(parents, on="community", how="anti")
    n_leaves = count_rows(leaves)
    findings = find_defects(
        leaves.filter(pl.col("n") > max_size).with_columns(smallness=-pl.col("n")),
        "communities",
        n_leaves,
        f"communities that are not split further have more than {max_size:,} entities: one report "
        "cannot cover them all. Lower create_communities.max_cluster_size, or raise max_levels or "
        "the resolution.",
        "community {community}: {n:,} entities",
        by=["smallness", "community"],
    )
    return CheckResult(n_leaves, findings)


def find_missing_reports(index: CheckedIndex) -> CheckResult:
    """Find communities without a report; skip an index without any report."""
    if not _has_reports(index):
        return NOT_CHECKED
    communities = index.tables["communities"].select("community")
    reports = index.tables["community_reports"].select("community")
    n_communities = count_rows(communities)
    findings = find_defects(
        communities.join(reports, on="community", how="anti"),
        "community_reports",
        n_communities,
        EXPLANATIONS["missing_reports"],
        "community {community}",
    )
    return CheckResult(n_communities, findings)


def find_empty_reports(index: CheckedIndex) -> CheckResult:
    """Find reports without text or with only a title."""
    text = index.first_column("community_reports", *_REPORT_TEXT_COLUMNS)
    if text is None:
        return NOT_CHECKED
    reports = index.tables["community_reports"]
    n_reports = count_rows(reports)
    content = pl.col(text).fill_null("")
    if text == "full_content":
        # Remove the first heading, which is the title of the report.
        content = content.str.replace(r"^\s*#[^\n]*", "")
    empty = reports.filter(content.str.strip_chars() == "")
    findings = find_defects(
        empty.select(row=index.label_column("community_reports")),
        "community_reports",
        n_reports,
        EXPLANATIONS["empty_reports"],
        "report on community {row}",
    )
    return CheckResult(n_reports, findings)


def find_unresolved_citations(index: CheckedIndex) -> CheckResult:
    """Find citations in reports whose rows do not exist."""
    text = index.first_column("community_reports", *_REPORT_TEXT_COLUMNS)
    if text is None:
        return NOT_CHECKED
    known = {section: _read_known_numbers(index, section) for section in CITED_COLUMNS}
    n_cited: dict[str, int] = defaultdict(int)
    # Unresolved citations by section: (report, citation, number of cited rows that are missing).
    broken: dict[str, list[tuple[object, str, int]]] = defaultdict(list)
    for row, citation, section, numbers in _read_citations(index, text):
        # Skip a citation of a table without numbers: it cannot be checked.
        if section in known and known[section] is None:
            continue
        n_cited[section] += len(numbers)
        if n_unknown := _count_unknown(numbers, known.get(section)):
            broken[section].append((row, citation, n_unknown))
    quoted = _find_quoted_citations(
        index, {citation for rows in broken.values() for _, citation, _ in rows}
    )
    findings = []
    for section, found in broken.items():
        rows = [(row, citation, n) for row, citation, n in found if citation not in quoted]
        if not rows:
            continue
        count, of = sum(n for _, _, n in rows), n_cited[section]
        reason = "there is no table of this name"
        if section in CITED_COLUMNS:
            table = CITED_COLUMNS[section].partition(".")[0].replace("_", " ")
            reason = f"there are no {table} with these numbers"
        means = (
            f"{count:,} of {of:,} citations of {section} in reports do not resolve: "
            f"{reason}. Write the reports again."
        )
        names = [f"{name_row('community_reports', row)}: {citation}" for row, citation, _ in rows]
        examples = tuple(names[:MAX_EXAMPLES])
        findings.append(Finding(f"community_reports.{text}", count, of, examples, means))
    return CheckResult(sum(n_cited.values()), findings)


def _read_citations(index: CheckedIndex, text: str) -> Iterator[tuple[object, str, str, set[int]]]:
    """Yield (report number, citation, section, numbers) for each section of a citation."""
    label = index.label_column("community_reports")
    reports = index.tables["community_reports"].select(label, pl.col(text).fill_null(""))
    for first in range(0, count_rows(reports), _REPORTS_PER_BATCH):
        for row, content in reports.slice(first, _REPORTS_PER_BATCH).collect().iter_rows():
            for start, end, cited in find_citations(content):
                for section in dict.fromkeys(section for section, _ in cited):
                    numbers = {number for other, number in cited if other == section}
                    yield row, content[start:end].strip(), section, numbers


def _read_known_numbers(index: CheckedIndex, section: str) -> Integers | None:
    """Return the numbers that a section may cite, ascending; None if its table has no numbers.

    Microsoft's searches cite text units by row number.
    """
    table, column = CITED_COLUMNS[section].split(".")
    if not index.has(table, column):
        return None
    numbers = index.tables[table].select(pl.col(column).cast(pl.Int64, strict=False)).drop_nulls()
    found = np.sort(numbers.collect(engine="streaming").to_series().to_numpy())
    if section == "Sources" and not index.is_own:
        found = np.union1d(found, np.arange(len(found)))
    return found if len(found) or index.is_own else None


def _count_unknown(numbers: set[int], known: Integers | None) -> int:
    """Count the numbers that are not in `known`, a sorted array."""
    if known is None or not len(known):
        return len(numbers)
    wanted = np.fromiter(numbers, np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return int((known[places] != wanted).sum())


def _find_quoted_citations(index: CheckedIndex, citations: set[str]) -> set[str]:
    """Return citations that a text unit contains too: the report may have quoted the document."""
    if not citations or not index.has("text_units", "text"):
        return set()
    wanted = {" ".join(citation.split()): citation for citation in citations}
    texts = pl.col("text").str.replace_all(r"\s+", " ")
    quoted = texts.str.extract_many(list(wanted)).list.unique()
    found = explode_lists(index.tables["text_units"].select(quoted), "text").unique()
    return {wanted[citation] for citation in found.collect(engine="streaming")["text"]}


_KEY_PLURALS = {"id": "ids", "title": "titles"}


def find_dangling_ids(index: CheckedIndex) -> CheckResult:
    """Find values that refer to missing rows of another table."""
    findings: list[Finding] = []
    n_references = 0
    for reference, target_key in REFERENCES.items():
        (table, column), (target, key) = reference.split("."), target_key.split(".")
        if not (index.has(table, column) and index.has(target, key)):
            continue
        named = _column_references(index, table, column)
        n_named = count_rows(named)
        n_references += n_named
        # Comparing 64-bit hashes is enough: collisions are unlikely even among a billion ids.
        known = index.tables[target].select(key=_hash_as_text(key)).drop_nulls()
        findings += find_defects(
            named.with_columns(key=_hash_as_text("named")).join(known, on="key", how="anti"),
            reference,
            n_named,
            f"{_KEY_PLURALS.get(key, 'numbers')} in {reference} belong to no row of {target}: "
            "those rows were deleted or never written; searches skip them. Rebuild the index "
            "from its documents.",
            name_row(table, "{row}") + ": {named}",
        )
    return CheckResult(n_references or None, findings)


def _column_references(index: CheckedIndex, table: str, column: str) -> pl.LazyFrame:
    """Return the values of a column as `named`, with the labels of their rows as `row`."""
    label = index.label_column(table) if index.has(table, index.label_column(table)) else column
    rows = index.tables[table].select(row=label, named=column)
    dtype = rows.collect_schema()["named"]
    if isinstance(dtype, pl.List):
        rows = rows.explode("named")
        if isinstance(dtype.inner, pl.Struct):
            rows = rows.with_columns(named=pl.col("named").struct.field("document_id"))
    rows = rows.drop_nulls("named")
    if column == "parent":
        rows = rows.filter(pl.col("named") != -1)  # level 0 has no parent
    if column in ("source_id", "target_id"):
        # Skip the empty ids of imported rows: the check of titles reports their unknown titles.
        rows = rows.filter(pl.col("named") != "")
    return rows


def _hash_as_text(column: str) -> pl.Expr:
    """Hash the text of a value, so that Int32 and Int64 values have the same hash."""
    return pl.col(column).cast(pl.String).hash()


def find_duplicate_rows(index: CheckedIndex) -> CheckResult:
    """Find rows with the same id, number or title, and relationships of the same two entities."""
    findings: list[Finding] = []
    n_values = 0
    for table in NEEDED_COLUMNS:
        # In communities and reports, human_readable_id is a copy of the community number.
        has_community = table in ("communities", "community_reports")
        columns = ["id", "community" if has_community else "human_readable_id"]
        for column in [*columns, "title"] if table == "entities" else columns:
            if index.has(table, column):
                rows, name = index.tables[table].select(column), f"{table}.{column}"
                n_values += _add_duplicate_finding(findings, rows, name, column)
    if index.has("relationships", "source", "target"):
        pairs = index.tables["relationships"].select("source", "target")
        if index.is_own:
            # Sort source and target, since these relationships have no direction.
            pairs = pairs.select(source=pl.min_horizontal("*"), target=pl.max_horizontal("*"))
        n_values += _add_duplicate_finding(findings, pairs, "relationships", "link")
    return CheckResult(n_values or None, findings)


def _add_duplicate_finding(
    findings: list[Finding], rows: pl.LazyFrame, name: str, column: str
) -> int:
    """Add a finding if rows are equal; return the number of rows without nulls.

    `column` is the key of the note on the consequences.
    """
    key = pl.concat_str(pl.all().cast(pl.String), separator="\x1f").alias("key")
    rows = rows.select(key).drop_nulls()
    hashes = rows.select(pl.col("key").hash().sort()).collect(engine="streaming")["key"]
    n_rows = len(hashes)
    repeated_hashes = hashes.filter(hashes == hashes.shift()).unique()
    if repeated_hashes.is_empty():
        return n_rows
    # Different values may have the same hash, so compare the values.
    candidates = rows.filter(pl.col("key").hash().is_in(repeated_hashes.implode()))
    sizes = candidates.group_by("key").len().filter(pl.col("len") > 1)
    repeated = sizes.collect(engine="streaming").sort("key")
    if count := int((repeated["len"] - 1).sum()):
        examples = tuple(
            f"{value.replace(chr(31), ' - ')} ({n} times)"
            for value, n in repeated.head(MAX_EXAMPLES).iter_rows()
        )
        repeat = f"{count:,} of {n_rows:,} rows of {name} repeat another"
        means = f"{repeat}. {TEXTS['duplicate_notes'][column]} Rebuild the index."
        findings.append(Finding(name, count, n_rows, examples, means))
    return n_rows


def find_equal_documents(index: CheckedIndex) -> CheckResult:
    """Find documents with the same text."""
    if not index.has("documents", "text"):
        return NOT_CHECKED
    name = index.first_column("documents", "path", "title", "id") or "text"
    rows = index.tables["documents"].select(pl.col("text").hash(), name=name)
    texts = rows.collect(engine="streaming")
    groups = texts.group_by("text", maintain_order=True).agg("name")["name"]
    repeated = groups.filter(groups.list.len() > 1)
    n_documents = len(texts)
    count = int((repeated.list.len() - 1).sum())
    if not count:
        return CheckResult(n_documents)
    examples = tuple(" = ".join(map(str, names[:3])) for names in repeated.head(MAX_EXAMPLES))
    means = (
        f"{count:,} of {n_documents:,} documents have the same text as another and count "
        "twice. Exclude the copies with load_documents.exclude."
    )
    finding = Finding("documents.text", count, n_documents, examples, means)
    return CheckResult(n_documents, [finding])


def find_stale_search_tables(index: CheckedIndex) -> CheckResult:
    """Compare row counts and ids of search tables with the tables they are derived from."""
    # By search table: (source table, expected number of rows).
    expected = {
        name: (table, count_rows(index.tables[table]))
        for name, table in ROWS_OF.items()
        if name in index.search_tables and index.has(table)
    }
    n_checked = sum(n for _, n in expected.values())
    if "relationships_of_entities" in index.search_tables and index.has("relationships"):
        # The search table lists each relationship for its source and for its target.
        expected["relationships_of_entities"] = ("relationships", 2 * _count_links(index))
    if "communities_of_entities" in index.search_tables and index.has("communities", "entity_ids"):
        members = explode_lists(index.tables["communities"].select("entity_ids"), "entity_ids")
        expected["communities_of_entities"] = ("communities", count_rows(members))
    findings = []
    for name, (table, n_expected) in expected.items():
        rows, source = index.search_tables[name], index.tables[table]
        n_rows = count_rows(rows)
        n_wrong = abs(n_rows - n_expected)
        has_ids = "id" in rows.collect_schema() and index.has(table, "id")
        if not n_wrong and name in ROWS_OF and has_ids:
            ids = pl.concat([rows.select(here="id"), source.select(there="id")], how="horizontal")
            differ = ids.select((pl.col("here") != pl.col("there")).sum())
            n_wrong = int(differ.collect(engine="streaming").item())
        if n_wrong:
            means = (
                f"{name} has {n_rows:,} rows, but {table} implies {n_expected:,}, or it has "
                "rows with other ids: searches would show wrong rows. Delete its file, and "
                "`graphrag-index run` writes it again."
            )
            findings.append(Finding(name, n_wrong, n_expected, (), means))
    return CheckResult(n_checked or None, findings)


def _count_links(index: CheckedIndex) -> int:
    """Count relationships between two known entities; imported rows may lack an entity."""
    rows = index.tables["relationships"]
    if not (index.has("relationships", "source_id") and index.has("entities", "id")):
        return count_rows(rows)
    known = index.tables["entities"].select(pl.col("id").hash()).drop_nulls()
    pairs = rows.select(pl.col("source_id", "target_id").hash())
    for end in pairs.collect_schema():
        pairs = pairs.join(known, left_on=end, right_on="id", how="semi")
    return count_rows(pairs.filter(pl.col("source_id") != pl.col("target_id")))


class EmbeddedTable(NamedTuple):
    """A vector table and the table whose rows it embeds."""

    name: str
    table: str
    rows: pl.LazyFrame  # columns: `row` (its name in messages), `key` (hash of its id), `text_hash`
    vectors: pl.LazyFrame
    n_vectors: int

    def find_defects(self, n_checked: int, defects: pl.LazyFrame, text: str) -> list[Finding]:
        """Return a finding on defective rows or vectors; `text` is the key of its explanation."""
        means = EXPLANATIONS[text].replace("ROWS", self.table.replace("_", " "))
        has_row = "row" in defects.collect_schema()
        example = f"{SINGULAR[self.table]} {{row}}" if has_row else "id {id}"
        return find_defects(defects, self.name, n_checked, means, example)


def read_embedded_tables(index: CheckedIndex) -> list[EmbeddedTable]:
    """Read the vector tables; record tables that cannot be read as damaged."""
    tables = []
    for name, (table, columns) in EMBEDDED_COLUMNS.items():
        if name not in index.vectors or not index.has(table, "id", *columns):
            continue
        try:
            vectors = read_vectors(index.vectors[name])
        except TableError as error:
            del index.vectors[name]
            index.damaged.append(Finding(name, 1, 1, (), str(error)))
            continue
        text = pl.concat_str([pl.col(c).fill_null("") for c in columns], separator=":")
        rows = index.tables[table]
        if index.has(table, "reading"):
            rows = rows.with_columns(text=READING)
        rows = rows.select(
            row=index.label_column(table), key=pl.col("id").hash(), text_hash=text.hash()
        )
        tables.append(EmbeddedTable(name, table, rows, vectors.lazy(), vectors.height))
    return tables


def find_missing_vectors(tables: list[EmbeddedTable]) -> CheckResult:
    """Find rows without a vector, and vectors with only zeros or with non-finite numbers."""
    findings: list[Finding] = []
    n_checked = 0
    for table in tables:
        rows, vectors = table.rows, table.vectors
        n_rows = count_rows(rows)
        n_checked += n_rows
        without = rows.join(vectors, on="key", how="anti")
        invalid = rows.join(vectors.filter(~pl.col("is_valid")), on="key", how="semi")
        findings += table.find_defects(n_rows, without, "no_vector")
        findings += table.find_defects(n_rows, invalid, "invalid_vector")
    return CheckResult(n_checked if tables else None, findings)


def find_stale_vectors(index: CheckedIndex, tables: list[EmbeddedTable]) -> CheckResult:
    """Find vectors of old texts or deleted rows, repeated vectors, and mixed models."""
    findings: list[Finding] = []
    for table in tables:
        rows, vectors, n = table.rows, table.vectors, table.n_vectors
        pairs = rows.join(vectors, on="key", suffix="_embedded")
        defects = {
            "vector_of_deleted_row": vectors.join(rows, on="key", how="anti"),
            "vector_of_earlier_text": pairs.filter(
                pl.col("text_hash") != pl.col("text_hash_embedded")
            ),
            "repeated_vector": vectors.filter(~pl.col("key").is_first_distinct()),
        }
        for text, defective in defects.items():
            findings += table.find_defects(n, defective, text)
    dimensions = {t.name: index.vectors[t.name].dimension for t in tables if t.n_vectors}
    if len(set(dimensions.values())) > 1:
        examples = tuple(f"{name}: {dimension:,}" for name, dimension in dimensions.items())
        means = EXPLANATIONS["different_dimensions"]
        findings.append(Finding("vectors", 1, len(dimensions), examples, means))
    current, models = index.question_model, index.vector_models
    others = {t.name: models[t.name] for t in tables if models.get(t.name, current) != current}
    if current is not None and others:
        examples = tuple(
            f"{name}: {describe_vector_identity(model)}" for name, model in others.items()
        )
        means = (
            f"The settings embed with {describe_vector_identity(current)}, and another model made "
            "these vectors: questions are refused. `graphrag-index run` embeds again."
        )
        findings.append(Finding("vectors", 1, len(models), examples, means))
    return CheckResult(sum(table.n_vectors for table in tables) if tables else None, findings)


def read_vectors(vectors: MicrosoftVectors) -> pl.DataFrame:
    """Read vectors as rows of `id`, `key` (hash of the id), `text_hash` (or null), `is_valid`.

    A vector is valid if all of its numbers are finite and at least one number is not zero.
    """
    schema = {"id": pl.String, "key": pl.UInt64, "text_hash": pl.UInt64, "is_valid": pl.Boolean}
    parts = [pl.DataFrame(schema=schema)]
    for batch in vectors.batches():
        values = batch["vector"].to_numpy()
        is_valid = np.isfinite(values).all(axis=1) & np.any(values, axis=1)
        text = (pl.col("text") if "text" in batch.columns else pl.lit(None)).cast(pl.String)
        parts.append(
            batch.select(
                "id",
                key=pl.col("id").hash(),
                # Keep null: the hash of null is a number, but a vector without text is not stale.
                text_hash=pl.when(text.is_not_null()).then(text.hash()),
                is_valid=pl.Series(is_valid, dtype=pl.Boolean),
            )
        )
    return pl.concat(parts)
