"""Ask an index.

    import graphrag_query
    index = graphrag_query.open("output")
    answer = index.local("Who was Tom Crean?")
    print(answer.text, answer.citations[0].quote)

The way of a question:

index.py             an opened index: one method a search
question.py          one question, with all that a search needs to answer it
..._search.py        the searches: local, global, basic, drift, lazy, path; neighbourhood.py
ask.py               which of them fits a question; question_cues.py, the words that show it
written_answer.py    a model writes from a context, and is checked
sentence_answer.py   without a model: sentences of the documents
answer.py            what a search returns

structured/          questions in SQL and Cypher; structured_command.py, their commands

What is read:

knowledge_model.py   the tables and vectors, opened at one version
microsoft_store.py   an index of Microsoft GraphRAG in their place; held_vectors.py, its vectors;
                     unknown_rows.py, rows for what it names and does not have
opening.py           which index a command asks
vector_identity.py   that questions are embedded by the model that made the vectors
links.py             what is linked with what, looked up by number
scope.py             the part of an index that filters leave; scoped_model.py, an index held to it
names_in_question.py which entities a question names; asked_entities.py, for paths; edit_distance.py
written_names.py     its names, as they are written
question_names.py    which of them the documents do not hold
text_unit_search.py  the text units to read for a question
text_unit_ranking.py how they are ranked: by match, and by what good ones lead to
report_choice.py     which reports are read; report_rating.py, those that a model finds relevant

Parts of one search:

global_map.py        what reports say on a question, as points of a model
global_sentences.py  global search without a model; main_entities.py, where it lists these
drift_step.py        one question of drift search; drift_sentences.py, without a model
community_descent.py which text units lazy search tests
lazy_requests.py     what it asks a model
shortest_paths.py    the best paths between two entities
relationship_evidence.py   the passages that prove relationships
subgraph.py          a part of the graph, as triples, sentences or for networkx

Models, and what is made of their replies:

chats.py             the models of an opened index; chat.py, one for a question
context.py           what a model is shown
cited_text.py        its citations, checked and followed to a passage
scores.py            scores as models write them
conversation.py      questions that lean on those before them
follow_ups.py        questions to ask next
sentence_ranking.py  without a model: which sentences answer best
unread_scripts.py    what questions and sentences share in scripts that the model cannot read

How answers are shown:

terminal.py          in a terminal or a pipe; stream.py, while they are written
notebook.py          in a notebook; subgraph_picture.py, a sub-graph as SVG

Importing this is cheap; what a search needs is imported when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Citation, Outcome

if TYPE_CHECKING:
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_query.index import Index

__all__ = ["Answer", "Citation", "Outcome", "open"]


def open(
    output: str | Path = "output",
    settings: "Settings | None" = None,
    root: str | Path | None = None,
    as_of: int | None = None,
) -> "Index":
    """Open the index in an output folder, at its current version or an earlier one, `as_of`.

    The folder may be one that Microsoft GraphRAG wrote, or hold its `output`; nothing is copied.
    It does not say which model made its vectors: `settings` do.

    `settings` are those of the searches and the models; without them, those that the index
    was made with, which hold no keys. `root` is the folder of `settings.yaml`, where
    `prompts/` may replace the prompts; without it, the one that holds the output folder.

    Raises
    ------
    TableError
        There is no index in that folder, or it cannot be read.
    SettingsError
        The settings name another embedding model than the one that made its vectors, or an
        earlier version is asked of an index that keeps none.
    """
    from graphrag_index.microsoft.read_files import is_microsoft
    from graphrag_query.index import Index
    from graphrag_query.retrieval.index_store import KnowledgeModel

    output = Path(output)
    if is_microsoft(output):
        from graphrag_index.errors import SettingsError
        from graphrag_index.schema.settings.settings import parse_settings

        if as_of is not None:
            raise SettingsError(
                f"{output} is an index of Microsoft GraphRAG, which keeps no earlier versions."
            )
        model = KnowledgeModel.open_microsoft(output, settings or parse_settings({}))
        return Index(model, settings, Path(root) if root is not None else output.parent)
    models = settings.models if settings else None
    model = KnowledgeModel.open(output, models, as_of)
    model.check_search_tables()
    if settings is not None and as_of is None:
        from graphrag_query.retrieval.vector_identity import check_embedding_model

        check_embedding_model(model, settings)
    return Index(model, settings, Path(root) if root is not None else output.parent)
