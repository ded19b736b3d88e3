"""Ask an index.

    import graphrag_query
    index = graphrag_query.open("output")
    answer = index.local("Who was Tom Crean?")
    print(answer.text, answer.citations[0].quote)

index.py             an opened index: one method a search
question.py          one question, with all that a search needs to answer it
knowledge_model.py   the tables and vectors, opened at one version
local_search.py      questions about an entity
global_search.py     questions about the whole corpus
basic_search.py      questions about a passage
lazy_search.py       questions to an index without reports
community_descent.py which text units are worth a test of relevance
lazy_requests.py     what lazy search asks a model
path_search.py       how entities are connected
neighbourhood.py     what surrounds an entity
ask.py               which of the searches fits a question
global_map.py        what reports say on a question, as points of a model
global_sentences.py  global search without a model
report_choice.py     which reports are read
report_rating.py     which a model finds relevant, from the top of the hierarchy down
drift_search.py      broad questions, followed into detail
drift_step.py        one of its questions, and what that leads to
drift_sentences.py   drift search without a model
scores.py            scores as models write them
chat.py              a language model, as the searches ask it
context.py           what a model is shown
written_answer.py    what it writes from that
cited_text.py        its citations, checked and followed to a passage
sentence_answer.py   answers without a model, made of sentences
sentence_ranking.py  which sentences answer a question
main_entities.py     the main people, places, events, organizations
shortest_paths.py    the best paths between two entities
asked_entities.py    the entities that a question asks about
question_cues.py     the words that show what kind of answer it wants
relationship_evidence.py   the passages that prove relationships
subgraph.py          a part of the graph, as triples, sentences or for networkx
subgraph_picture.py  the same as SVG
notebook.py          answers as a notebook shows them
question_names.py    which of its names the documents do not hold
answer.py            what a search returns

Importing this is cheap; what a search needs is imported when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Citation, Outcome

if TYPE_CHECKING:
    from graphrag_index.core.settings import Settings
    from graphrag_query.index import Index

__all__ = ["Answer", "Citation", "Outcome", "open"]


def open(
    output: str | Path = "output",
    settings: "Settings | None" = None,
    root: str | Path | None = None,
    as_of: int | None = None,
) -> "Index":
    """Open the index in an output folder, at its current version or an earlier one, `as_of`.

    `settings` are those of the searches and the models; without them, those that the index
    was made with, which hold no keys. `root` is the folder of `settings.yaml`, where
    `prompts/` may replace the prompts; without it, the one that holds the output folder.

    Raises
    ------
    TableError
        There is no index in that folder, or it cannot be read.
    """
    from graphrag_query.index import Index
    from graphrag_query.knowledge_model import KnowledgeModel

    output = Path(output)
    models = settings.models if settings else None
    model = KnowledgeModel.open(output, models, as_of)
    model.check_search_tables()
    return Index(model, settings, Path(root) if root is not None else output.parent)
