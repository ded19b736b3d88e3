"""Prove that two checkouts of this repository are the same program.

    python benchmarks/compare_checkouts.py BEFORE AFTER [--microsoft DIR] [--model-backed]

Both checkouts index and update the same projects and answer the same questions. They are driven
by their command lines alone. Compared are the public tables, row by row and byte by byte, the
vectors, the answers, the output of `check`, and the requests that a model receives. The CPU seconds
of both are printed, and the exit code is 1 if anything differs. Linux and macOS.

Nothing is written into the checkouts. Settings, workflows and sample documents are those of BEFORE;
the model server is the one of the checkout that holds this script.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path

import polars as pl
import yaml
from index import describe_machine, markdown, working_folder
from models import server
from planted import make_corpus

# The time that a question took. Nothing else in the output may differ from run to run.
UNSTABLE = re.compile(r'"seconds": [\d.e-]+')
FAILED = "The command failed"
MAX_DETAILS = 20  # printed of one kind in one stage
MAX_VALUES = 3  # printed of one table
MAX_CHARACTERS = 140  # printed of one value from the first difference on
PRECEDING_CHARACTERS = 60  # printed before it

EMBEDDING = "generate_text_embeddings"
RUN = (("run", "--quiet"), ("check", "--json"))
SAMPLE_QUESTIONS = (
    ("ask", "Who was Tom Crean?"),
    ("ask", "How are Roald Amundsen and Robert Falcon Scott connected?"),
    ("local", "Who was Frank Wild?"),
    ("local", "What did Shakleton do on Elephant Island?"),  # misspelt
    ("local", "Qui était Adrien de Gerlache ?"),
    ("local", "Who won the football World Cup in 2014?"),  # not in the documents
    ("local", "What did Scott find?", "--type", "person", "--where", "path=people/*"),
    ("basic", "Why did the crews fall ill with scurvy?"),
    ("global", "What are the main themes?"),
    ("drift", "How did the expeditions travel over the ice?"),
    ("lazy", "Which animals were taken along?"),
    ("path", "Tom Crean", "Frank Wild"),
    ("neighbourhood", "Ernest Shackleton"),
    ("sql", "SELECT type, count(*) AS n FROM entities GROUP BY type ORDER BY n DESC, type"),
)
UPDATE_QUESTIONS = (
    ("local", "Who declined to join the Quest?"),
    ("global", "What did Tom Crean do in his life?"),
    ("path", "Tom Crean", "Quest"),
)
MICROSOFT_QUESTIONS = (
    ("local", "Who is Agent Mercer?"),
    ("global", "What are the main themes?"),
    ("basic", "What lies under Dulce?"),
    ("path", "Alex Mercer", "Taylor Cruz"),
)
ADDED_SENTENCE = (
    "\n\nIn 1921 Tom Crean declined to join Frank Wild and Frank Worsley on the Quest.\n"
)


@dataclass(frozen=True)
class Table:
    """A table in memory; the digest of its file is empty where bytes need not be equal."""

    rows: pl.DataFrame
    digest: str = ""


# By kind and name, such as ("table", "entities").
Results = dict[tuple[str, str], Table | str]


@dataclass(frozen=True)
class Stage:
    """One thing that both checkouts do: change a project, index it, ask questions."""

    name: str
    folder: str  # of the project, which may be one of an earlier stage
    prepare: Callable[[Path], None]
    commands: Sequence[Sequence[str]]
    questions: Sequence[Sequence[str]]
    overrides: Sequence[str] = ()  # settings, as KEY=VALUE


@dataclass
class Side:
    """One checkout, the folder of its projects, and its CPU and wall seconds by stage."""

    checkout: Path
    folder: Path
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        packages = ("graphrag_index", "graphrag_query")
        for package in packages:
            file = self.python(".", "-c", f"import {package}; print({package}.__file__)").stdout
            if Path(file).parent != self.checkout / package:
                sys.exit(f"{package} is imported from {file or 'nowhere'}, not {self.checkout}.")
        # Otherwise the first command of each side would compile the package.
        folders = [str(self.checkout / package) for package in packages]
        self.python(".", "-m", "compileall", "-q", *folders)

    def python(self, folder: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run Python in a folder with the packages of this checkout, which stays unchanged."""
        compiled = str(self.folder / "compiled")
        environment = {"PYTHONPATH": str(self.checkout), "PYTHONPYCACHEPREFIX": compiled}
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder / folder,
            env=inherited | environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def run(self, stage: Stage) -> Results:
        """Do a stage and return all that can be compared."""
        stage.prepare(self.folder / stage.folder)
        results: Results = {}
        with self.timed(f"{stage.name}: index"):
            for command in stage.commands:
                results["command", " ".join(command)] = self.output(stage, "index", *command)
        with self.timed(f"{stage.name}: questions"):
            for question in stage.questions:
                answer = self.output(stage, "query", *question, "--json")
                results["question", " ".join(question)] = answer
        return results | read_tables(self.folder / stage.folder / "output")

    def output(self, stage: Stage, package: str, *arguments: str) -> str:
        """Return the output of a command, without the parts that differ from run to run."""
        overrides = [part for override in stage.overrides for part in ("--set", override)]
        done = self.python(stage.folder, "-m", f"graphrag_{package}", *arguments, *overrides)
        text = done.stdout
        # `check` exits with 1 and prints its findings if it objects to the index.
        if done.returncode and not text:
            text = f"{FAILED} with exit code {done.returncode}: {done.stderr.strip()}"
        return UNSTABLE.sub('"seconds": 0', text.replace(str(self.folder), "FOLDER"))

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note the seconds of the processes started inside."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, wall = used.ru_utime + used.ru_stime, time.perf_counter()
        yield
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds[name] = used.ru_utime + used.ru_stime - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--text-units", type=int, default=1_000, help="of the planted corpus")
    parser.add_argument("--embed", action="store_true", help="embed the planted corpus: minutes")
    parser.add_argument("--microsoft", type=Path, help="an index of Microsoft GraphRAG")
    parser.add_argument("--model-backed", action="store_true", help="ask a local model server too")
    parser.add_argument("--only", default="", help="stages whose names begin with this")
    parser.add_argument("--work", type=Path, help="a new folder for the projects, which is kept")
    arguments = parser.parse_args()
    counts, details = [], []
    with working_folder(arguments.work) as folder, ExitStack() as stack:
        work = folder.resolve()
        before = Side(arguments.before.resolve(), work / "before")
        after = Side(arguments.after.resolve(), work / "after")
        log = work / "requests.jsonl"
        url = stack.enter_context(server("--log", str(log))) if arguments.model_backed else ""
        for stage in make_stages(before.checkout, work, arguments, url):
            if not stage.name.startswith(arguments.only):
                continue
            results = []
            for side in (before, after):
                print(f"{stage.name}: {side.checkout} ...", file=sys.stderr, flush=True)
                results.append(side.run(stage) | (read_requests(log) if url else {}))
            found = compare(*results)
            for kind in dict.fromkeys(kind for kind, _ in found):
                bad = [name for (of, name), text in found.items() if of == kind and text]
                n = sum(of == kind for of, _ in found)
                counts.append([stage.name, kind, f"{n - len(bad)}", f"{len(bad)}"])
                details += [
                    f"{stage.name}, {kind} {name}\n{found[kind, name]}"
                    for name in bad[:MAX_DETAILS]
                ]
    print(describe_machine())
    print()
    print(markdown(["stage", "compared", "equal", "different"], counts))
    print()
    print(describe_seconds(before, after))
    for detail in details:
        print(f"\n{detail}")
    if not arguments.microsoft:
        print("\nNo index of Microsoft GraphRAG was compared: name one with --microsoft DIR.")
    sys.exit(bool(details) or not counts)


def make_stages(
    checkout: Path, work: Path, arguments: argparse.Namespace, url: str
) -> Iterator[Stage]:
    copy = partial(copy_project, checkout)
    yield Stage("sample", "sample", copy, RUN, SAMPLE_QUESTIONS)
    yield Stage("sample, updated", "sample", edit_document, RUN, UPDATE_QUESTIONS)

    corpus = work / "corpus"
    make_corpus(arguments.text_units, corpus)
    truth = json.loads((corpus / "ground_truth.json").read_text(encoding="utf-8"))
    (source, target), *_, (_, far) = [(row["source"], row["target"]) for row in truth["relations"]]
    questions = [
        ("ask", f"How are {source} and {target} connected?"),
        ("path", source, far),
        ("neighbourhood", source),
        ("neighbourhood", far),
        ("sql", "SELECT level, count(*) AS n FROM communities GROUP BY level ORDER BY level"),
    ]
    if arguments.embed:
        questions += [("local", f"Who is {source}?"), ("global", "What are the main themes?")]
    prepare = partial(copy_planted, checkout, corpus, arguments.embed)
    settings = ["workflow=planted", "create_text_units.max_tokens=600"]
    yield Stage("planted", "planted", prepare, RUN, questions, settings)

    if arguments.microsoft:
        index = str(arguments.microsoft.resolve())
        imported = [("import", index, "--no-vectors", "--quiet"), *RUN]
        settings = ["workflow=imported"]
        yield Stage("imported", "imported", copy, imported, MICROSOFT_QUESTIONS, settings)
        in_place = [(*question, "--index", index) for question in MICROSOFT_QUESTIONS]
        yield Stage("opened in place", "in_place", copy, [("check", index, "--json")], in_place)

    if url:
        settings = ["workflow=standard", "generate_text_embeddings.model=embedding"]
        for name, model in (("chat", "test-model"), ("embedding", "test-embedding")):
            known = {"model": model, "base_url": url, "api_key": "none"}
            settings += [f"models.{name}.{key}={value}" for key, value in known.items()]
        yield Stage("models", "models", copy, RUN, SAMPLE_QUESTIONS, settings)
        yield Stage("models, updated", "models", edit_document, RUN, UPDATE_QUESTIONS, settings)


def copy_project(checkout: Path, project: Path) -> None:
    """Copy the sample project, with the dates of its files: they become dates of documents."""
    project.mkdir()
    shutil.copy2(checkout / "settings.yaml", project)
    for name in ("workflows", "input"):
        shutil.copytree(checkout / name, project / name)


def copy_planted(checkout: Path, corpus: Path, embed: bool, project: Path) -> None:
    copy_project(checkout, project)
    shutil.rmtree(project / "input")
    shutil.copytree(corpus / "input", project / "input")
    workflows = project / "workflows"
    steps = yaml.safe_load((workflows / "embedded.yaml").read_text(encoding="utf-8"))
    kept = [step for step in steps if embed or step != EMBEDDING]
    (workflows / "planted.yaml").write_text(yaml.safe_dump(kept), encoding="utf-8")


def edit_document(project: Path) -> None:
    """Add a sentence to a document; both sides date the change an hour after the original."""
    path = project / "input/people/tom-crean.txt"
    changed = path.stat().st_mtime + 3_600
    path.write_text(path.read_text(encoding="utf-8") + ADDED_SENTENCE, encoding="utf-8")
    os.utime(path, (changed, changed))


def read_tables(output: Path) -> Results:
    """Read the public tables and the vectors of an index, if there is one."""
    import lancedb

    results: Results = {}
    for path in sorted(output.glob("*.parquet")):
        digest = sha256(path.read_bytes()).hexdigest()
        results["table", path.stem] = Table(pl.read_parquet(path), digest)
    for path in sorted(output.glob("lancedb/*.lance")):
        rows = pl.DataFrame(lancedb.connect(path.parent).open_table(path.stem).to_arrow())
        # LanceDB keeps no order of rows, and names its files at random.
        results["vectors", path.stem] = Table(rows.sort("id"))
    return results


def read_requests(log: Path) -> Results:
    """Count how often the model server received each body, by its hash, and empty the log."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    os.truncate(log, 0)
    sent = Counter(f"{line['path']} {line['key']}" for line in lines if line["event"] == "arrival")
    return {("request", body): f"sent {n} times" for body, n in sent.items()}


def compare(before: Results, after: Results) -> dict[tuple[str, str], str]:
    """Describe the first differences of each result; empty if both are equal."""
    found = {}
    for key in before | after:
        left, right = before.get(key), after.get(key)
        if left is None or right is None:
            found[key] = f"It is only there {'before' if right is None else 'after'}."
        elif isinstance(left, Table) and isinstance(right, Table):
            found[key] = table_difference(left, right)
        else:
            found[key] = text_difference(str(left), str(right))
    return found


def table_difference(before: Table, after: Table) -> str:
    """Describe the first values that differ; empty if types, order and bytes are equal too."""
    left, right = before.rows, after.rows
    if left.schema != right.schema:
        return text_difference(*("\n".join(map(str, t.schema.items())) for t in (left, right)))
    if left.height != right.height:
        return f"{left.height:,} rows before, {right.height:,} after"
    if left.equals(right):
        return "" if before.digest == after.digest else "The rows are equal, the bytes are not."
    lines = []
    for name in left.columns:
        for row, (a, b) in enumerate(zip(left[name].to_list(), right[name].to_list(), strict=True)):
            if a != b:
                lines.append(f"row {row}, {name}:\n{text_difference(str(a), str(b))}")
    if len(lines) > MAX_VALUES:
        lines[MAX_VALUES:] = [f"and {len(lines) - MAX_VALUES:,} more values"]
    return "\n".join(lines)


def text_difference(before: str, after: str) -> str:
    """Show both texts from shortly before their first difference."""
    if before == after:
        # Two failures prove nothing.
        return before if before.startswith(FAILED) else ""
    unequal = (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    first = next(unequal, min(len(before), len(after)))
    shown = slice(max(0, first - PRECEDING_CHARACTERS), first + MAX_CHARACTERS)
    return f"- {before[shown]}\n+ {after[shown]}"


def describe_seconds(before: Side, after: Side) -> str:
    rows = []
    for name, (cpu, wall) in before.seconds.items():
        after_cpu, after_wall = after.seconds[name]
        numbers = (cpu, after_cpu, after_cpu / cpu, wall, after_wall)
        rows.append([name, *(f"{number:.2f}" for number in numbers)])
    return markdown(["stage", "CPU s before", "after", "ratio", "s before", "after"], rows)


if __name__ == "__main__":
    main()
