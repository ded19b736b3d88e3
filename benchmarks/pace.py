"""Compare the estimated time of a run with the time of the run, in CPU seconds.

    python benchmarks/pace.py PROJECT [--set KEY=VALUE ...]

Printed as Markdown for each step: the estimate of `graphrag-index estimate` before the run, the
estimate of `graphrag-index run` from the smaller sample, and what the run then took. PROJECT is a
folder that `benchmarks/index.py --folder` has written.
"""

import argparse
import time
from pathlib import Path

from index import describe_machine, markdown, measure

from graphrag_index.pipeline.estimate import MIN_ANNOUNCED_DOCUMENTS, SAMPLE_CHARACTERS, estimate
from graphrag_index.pipeline.shards import count_cores
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import load_settings

SAMPLES = {
    "estimate": {"max_documents": 100},
    "announcement": {
        "max_documents": MIN_ANNOUNCED_DOCUMENTS,
        "max_characters": SAMPLE_CHARACTERS // MIN_ANNOUNCED_DOCUMENTS,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    settings = load_settings(arguments.project, [*arguments.set, "output=no-output"])
    workflow = load_workflow(arguments.project, settings.workflow)
    columns, totals = [], []
    for options in SAMPLES.values():
        started = time.process_time()
        found = estimate(workflow, settings, arguments.project, **options)
        taken = time.process_time() - started
        columns.append({one.step: one.cpu_seconds or 0.0 for one in found.times})
        totals.append(f"{sum(columns[-1].values()):.1f} (itself {taken:.1f})")
    run = measure(arguments.project, count_cores(), arguments.set)
    columns.append({name: step["cpu_seconds"] for name, step in run.steps.items()})
    rows = [[name, *(f"{column[name]:.1f}" for column in columns)] for name in columns[-1]]
    rows.append(["sum", *totals, f"{sum(columns[-1].values()):.1f}"])
    print(describe_machine())
    print()
    print(markdown([f"{run.text_units:,} text units, CPU s", *SAMPLES, "run"], rows))


if __name__ == "__main__":
    main()
