"""The command line `graphrag-index`."""

import os
from gc import set_threshold

import typer

from graphrag_index.cli.evaluation_commands import evaluate, tune
from graphrag_index.cli.exchange_commands import export, import_
from graphrag_index.cli.index_commands import check, diff, gc, resolve, rollback, show, versions
from graphrag_index.cli.project_commands import download_model, init, schema, validate
from graphrag_index.cli.run_commands import estimate, retry, run, status
from graphrag_index.cli.server_commands import keys, mcp, serve
from graphrag_index.errors import run_program
from graphrag_index.explaining_command import ExplainingCommand
from graphrag_index.storage.lancedb_stubs import stub_unused_imports

app = typer.Typer(
    help="Turn a folder of documents into an index that answers questions about all of it.",
    no_args_is_help=True,
    add_completion=False,
    # Importing `rich` would take longer than the rest of the start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# The help lists the commands in this order.
for command in (
    *(init, validate, schema, download_model),
    *(run, retry, status, estimate),
    *(show, check, resolve, versions, diff, rollback, gc),
    *(tune, export, serve, mcp),
):
    app.command(cls=ExplainingCommand)(command)
app.command("import", cls=ExplainingCommand)(import_)
app.add_typer(evaluate, name="evaluate")
app.add_typer(keys, name="keys")


def main() -> None:
    """Run the command line `graphrag-index`."""
    # Products of matrices are small here, and the threads of numpy mostly wait for each other: they
    # took 0.7 of the 17 CPU seconds of an update. Shards use all cores. numpy is not imported yet.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A run makes many short-lived objects and few cycles. With the default of 700, the garbage
    # collector took 2.8 of the 32 CPU seconds of 10,000 text units.
    set_threshold(10_000)
    stub_unused_imports()
    run_program(app)


if __name__ == "__main__":
    main()
