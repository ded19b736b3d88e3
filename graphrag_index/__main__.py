"""The command line `graphrag-index`."""

import typer

from graphrag_index.cli import (
    estimate_commands,
    export_command,
    import_command,
    index_commands,
    project_commands,
    run_commands,
    version_commands,
)
from graphrag_index.errors import run_program
from graphrag_index.storage.lancedb_stub import stub_unused_imports

app = typer.Typer(
    help="Turn a folder of documents into an index that answers questions about all of it.",
    no_args_is_help=True,
    add_completion=False,
    # Rich help would take longer to import than the whole start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in (
    project_commands,
    run_commands,
    estimate_commands,
    index_commands,
    version_commands,
    export_command,
    import_command,
):
    module.add_commands(app)


def main() -> None:
    """Run a command of `graphrag-index`."""
    stub_unused_imports()
    run_program(app)


if __name__ == "__main__":
    main()
