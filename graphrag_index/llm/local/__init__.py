"""Embedding models that run on this machine.

local_models.py       finds, downloads and loads a model; vectors that searches have computed
static_model.py       a table of vectors, the sum of which is the vector of a text
word_pieces.py        the tokens of the table in this package; tokenizers of other models
onnx_model.py         a sentence transformer as a graph in onnxruntime
own_model.py          a model of the user: its description and the checks of its files
reader_model.py       an extractive question-answering model of the user
"""
