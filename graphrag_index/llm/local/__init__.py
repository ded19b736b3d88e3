"""Embedding models that run on this machine.

local_models.py       finds and loads a model by its name or its folder
static_model.py       a table of vectors, the sum of which is the vector of a text
word_pieces.py        the tokens of the table in this package; tokenizers of other models
onnx_session.py       a graph in onnxruntime
onnx_model.py         a sentence transformer as such a graph
own_model.py          a model of the user: its description and the checks of its files
reader_model.py       an extractive question-answering model of the user
vector_cache.py       vectors of passages that searches have computed
model_package.py      the download of all-MiniLM-L6-v2
"""
