"""Where a workflow reads, and that it is there and not where the run writes."""

from pathlib import Path

from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.readers.graph.graph_rows import check_not_output, given_files
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.steps.load_documents import check_output, find_files, load_documents
from graphrag_index.steps.read_graph import read_graph
from graphrag_index.steps.skip_imported import skip_imported


def check_input(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that the index is not written where its input lies.

    Raises
    ------
    SettingsError
        The output is the input folder or holds it, or holds a file of a given graph.
    InputError
        There is nothing to read for a workflow that does without what was imported.
    """
    output = root / settings.output
    if read_graph in workflow.steps:
        check_not_output(settings.read_graph, root, output)
    if load_documents in workflow.steps or read_graph not in workflow.steps:
        check_output(settings.load_documents, root, output)
    is_whole = load_documents in workflow.steps and skip_imported not in workflow.steps
    if is_whole and has_imported(root):
        # What was imported is no part of this workflow: it needs documents.
        find_files(settings.load_documents, root)


def check_files(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that there is something to read.

    Raises
    ------
    InputError
        There is not.
    """
    if load_documents in workflow.steps:
        may_be_empty = skip_imported in workflow.steps and has_imported(root)
        find_files(settings.load_documents, root, may_be_empty=may_be_empty)
    if read_graph in workflow.steps:
        given_files(settings.read_graph, root)
