"""Measure entity resolution on invented names, of which some are variants of others.

    python benchmarks/resolution.py --sizes 20000 200000

Each size is resolved in a process of its own, by rules alone. Printed as Markdown: seconds, CPU
seconds and peak memory of the step, and the precision and recall of pairs: of those that were
merged, and of those that were merged or listed as doubtful. Half of the variants are such as a
rule may merge; the others, a letter that differs or a single initial, are for a person or a model
to decide. Beside them stand names that are alike and mean two things: other numbers, other given
names of one family, North and South. Linux and macOS.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import polars as pl
from index import MIB, describe_machine, markdown
from planted import GIVEN, _word

from graphrag_index.llm.prompts import Prompts
from graphrag_index.schema.settings.step_sections import ResolveEntities
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.resolve_entities import resolve_entities
from graphrag_index.storage.table_store import Previous, TableStore

# Of a hundred things.
SHARE_WITH_VARIANT = 0.2
SHARE_WITH_RIVAL = 0.2
ENTITIES_PER_TEXT_UNIT = 2.5
MENTIONS, LINKS = 4, 3  # of each entity
KINDS = ("Society", "Academy", "Railway", "Bank", "Expedition", "Museum", "Bridge", "Festival")
# Variants that a rule may merge, and such as it must leave to others.
SURE = ("accent", "hyphen", "form", "title", "article", "brackets", "initial")
DOUBTFUL = ("letter", "single initial")

# The titles of one thing, each with its type and how the variant was made.
Thing = list[tuple[str, str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    rows = []
    for size in arguments.sizes:
        print(f"{size:,} entities ...", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(size)],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "POLARS_MAX_THREADS": "2"},
        )
        rows.append(list(json.loads(done.stdout)))
    header = ["entities", "s", "CPU s", "peak MiB", "merged: precision", "recall of the sure"]
    header += ["doubtful: precision", "recall with them", "things that are alike, merged"]
    print(describe_machine())
    print()
    print(markdown(header, rows))


def measure(n_entities: int) -> list[str]:
    """Resolve invented entities; the cells of a row."""
    things, rivals = invent(n_entities, random.Random(1))
    tables = as_tables(things, random.Random(2))
    root = Path(tempfile.gettempdir()) / "there-is-no-such-project"
    started, cpu = time.perf_counter(), time.process_time()
    made: dict[str, pl.DataFrame] = {}
    for frames in resolve_entities(
        **tables,
        settings=ResolveEntities(),
        root=root,
        previous=Previous(TableStore(root), None),
        chat_model=None,
        embedding_model=None,
        prompts=Prompts(root),
        progress=Silent(),
        shards=SerialShards(),
    ):
        made |= frames
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mib = peak * (1 if sys.platform == "darwin" else 1024) / MIB
    thing_of = {title: number for number, thing in enumerate(things) for title, *_ in thing}
    true = {
        frozenset(pair)
        for thing in things
        for pair in combinations((title for title, *_ in thing), 2)
    }
    sure = {
        frozenset((thing[0][0], title))
        for thing in things
        for title, _, how in thing[1:]
        if how in SURE
    }
    groups: dict[str, set[str]] = {}
    for title, resolved in made["entity_resolutions"].select("title", "resolved").rows():
        groups.setdefault(resolved, {resolved}).add(title)
    merged = {frozenset(pair) for group in groups.values() for pair in combinations(group, 2)}
    doubtful = {frozenset(row) for row in made["doubtful_pairs"].select("title", "other").rows()}
    wrong = sum(len({thing_of[title] for title in pair}) > 1 for pair in merged & rivals)
    return [
        *(f"{n_entities:,}", f"{seconds:.1f}", f"{cpu:.1f}", f"{peak_mib:,.0f}"),
        share(merged & true, merged),
        share(merged & sure, sure),
        share(doubtful & true, doubtful),
        share((merged | doubtful) & true, true),
        f"{wrong} of {len(rivals):,}",
    ]


def share(part: set[frozenset[str]], whole: set[frozenset[str]]) -> str:
    return f"{len(part) / len(whole):.3f}" if whole else ""


def invent(n_entities: int, chance: random.Random) -> tuple[list[Thing], set[frozenset[str]]]:
    """Invent things with their titles, types and how each variant was made; and pairs of rivals."""
    things: list[Thing] = []
    rivals: set[frozenset[str]] = set()
    used: set[str] = set()
    n_made = 0
    while n_made < n_entities:
        title, kind = fresh(chance)
        thing: Thing = [(title, kind, "")]
        if chance.random() < SHARE_WITH_VARIANT:
            how = chance.choice(SURE + DOUBTFUL)
            varied = variant(title, kind, how, chance)
            thing += [(varied, kind, how)] if varied else []
        if used & {folded(name) for name, *_ in thing}:
            continue
        new = [thing]
        if chance.random() < SHARE_WITH_RIVAL:
            other = rival(title, kind, chance)
            if folded(other) not in used:
                new.append([(other, kind, "")])
                rivals.add(frozenset((title, other)))
        things += new
        used |= {folded(name) for made in new for name, *_ in made}
        n_made += sum(map(len, new))
    return things, rivals


def folded(title: str) -> str:
    """What two things must differ in, or nobody could tell them apart."""
    return title.casefold().replace("é", "e")


def fresh(chance: random.Random) -> tuple[str, str]:
    if chance.random() < 0.5:
        middle = f" {chance.choice(GIVEN)}" if chance.random() < 0.5 else ""
        return f"{chance.choice(GIVEN)}{middle} {accented(_word(chance), chance)}", "person"
    words = [accented(_word(chance), chance) for _ in range(chance.choice((1, 2)))]
    number = f" {chance.randrange(1, 40)}" if chance.random() < 0.2 else ""
    return f"{' '.join(words)} {chance.choice(KINDS)}{number}", "organization"


def accented(word: str, chance: random.Random) -> str:
    return word.replace("e", "é", 1) if chance.random() < 0.3 else word


def variant(title: str, kind: str, how: str, chance: random.Random) -> str:
    """Write a name in another way; empty if it cannot be."""
    words = title.split(" ")
    if how == "accent":
        return title.replace("é", "e") if "é" in title else ""
    if how == "hyphen":
        return "-".join(words[:2]) + "".join(f" {word}" for word in words[2:])
    if how == "form":
        return f"{title} Ltd" if kind == "organization" and not title[-1].isdigit() else ""
    if how == "title":
        return f"Dr. {title}" if kind == "person" else ""
    if how == "article":
        return f"The {title}" if kind == "organization" else ""
    if how == "brackets":
        letters = "".join(word[0] for word in words)
        plain = kind == "organization" and letters.isalpha() and len(words) > 2
        return f"{title} ({letters.upper()})" if plain else ""
    if how == "initial":
        return (
            f"{words[0]} {words[1][0]}. {words[2]}" if len(words) == 3 and kind == "person" else ""
        )
    if how == "single initial":
        return f"{words[0][0]}. {words[1]}" if len(words) == 2 and kind == "person" else ""
    longest = max(words, key=len)
    at = chance.randrange(1, len(longest) - 1)
    return title.replace(longest, longest[:at] + chance.choice("aeiou") + longest[at + 1 :])


def rival(title: str, kind: str, chance: random.Random) -> str:
    """Name another thing that is much alike."""
    words = title.split(" ")
    if kind == "person":
        return " ".join([chance.choice([g for g in GIVEN if g != words[0]]), *words[1:]])
    if words[-1].isdigit():
        return " ".join([*words[:-1], str(int(words[-1]) + 1)])
    return f"{chance.choice(('North', 'South', 'New', 'Upper'))} {title}"


def as_tables(things: list[Thing], chance: random.Random) -> dict[str, pl.LazyFrame]:
    """Write the entities as extraction would have found them; variants share text units."""
    rows: list[tuple[str, str]] = []
    mentions: list[tuple[int, int, int, int]] = []
    n_units = max(1, round(sum(map(len, things)) / ENTITIES_PER_TEXT_UNIT))
    for thing in things:
        own = [chance.randrange(n_units) for _ in range(MENTIONS)]
        for number, (title, kind, *_) in enumerate(thing):
            units = own[: MENTIONS - number]
            mentions += [(len(rows), unit, 0, 1) for unit in dict.fromkeys(units)]
            rows.append((title, kind))
    links = [
        (source, chance.randrange(len(rows))) for source in range(len(rows)) for _ in range(LINKS)
    ]
    entities = pl.DataFrame(rows, schema=["title", "type"], orient="row").with_row_index(
        "human_readable_id"
    )
    ends = pl.DataFrame(links, schema=["source", "target"], orient="row")
    units = pl.DataFrame({"human_readable_id": range(n_units)}).with_columns(
        id=pl.col("human_readable_id").cast(pl.String),
        document_id=(pl.col("human_readable_id") // 8).cast(pl.String),
        start_char=pl.lit(0),
        end_char=pl.lit(1),
    )
    return {
        "extracted_mentions": pl.LazyFrame(
            mentions, schema=TABLES["extracted_mentions"].schema, orient="row"
        ),
        "base_text_units": units.lazy(),
        "documents": units.select(id="document_id", title=pl.lit(""), path=pl.lit("")).lazy(),
        "extracted_entities": filled(entities, "extracted_entities"),
        "extracted_relationships": filled(ends, "extracted_relationships"),
    }


def filled(rows: pl.DataFrame, table: str) -> pl.LazyFrame:
    """Add the columns that a table has and rows lack: empty texts and lists, and 1."""
    columns = [
        pl.col(name).cast(kind) if name in rows.columns else _default(kind).alias(name)
        for name, kind in TABLES[table].schema.items()
    ]
    return rows.lazy().select(columns)


def _default(kind: pl.DataType) -> pl.Expr:
    if kind.is_nested():
        return pl.lit([], dtype=kind)
    return pl.lit("") if kind == pl.String else pl.lit(1, dtype=kind)


if __name__ == "__main__":
    main()
