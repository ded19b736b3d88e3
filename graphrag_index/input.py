"""Where a workflow reads, and that it is there and not where the run writes."""

from pathlib import Path

from graphrag_index.core.settings import Settings
from graphrag_index.given_graph.rows import check_not_output, given_files
from graphrag_index.steps.load_documents import check_output, find_files, load_documents
from graphrag_index.steps.read_graph import read_graph
from graphrag_index.workflow import Workflow


def check_input(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that the index is not written where its input lies.

    Raises
    ------
    SettingsError
        The output is the input folder or holds it, or holds a file of a given graph.
    """
    output = root / settings.output
    if read_graph in workflow.steps:
        check_not_output(settings.read_graph, root, output)
    if load_documents in workflow.steps or read_graph not in workflow.steps:
        check_output(settings.load_documents, root, output)


def check_files(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that there is something to read.

    Raises
    ------
    InputError
        There is not.
    """
    if load_documents in workflow.steps:
        find_files(settings.load_documents, root)
    if read_graph in workflow.steps:
        given_files(settings.read_graph, root)
