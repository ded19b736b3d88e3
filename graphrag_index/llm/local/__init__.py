"""Embedding models that run on this machine.

local_models.py       finds, downloads and loads a model; vectors that searches have computed
static_model.py       a table of vectors, the sum of which is the vector of a text
word_pieces.py        the tokens of the table in this package; tokenizers of models in onnxruntime
onnx_model.py         all-MiniLM-L6-v2 and other graphs in onnxruntime
reader_model.py       an extractive question-answering model of the user
"""
