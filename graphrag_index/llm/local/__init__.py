"""Embedding models that run on this machine.

local_models.py       finds, downloads and loads a model; vectors that searches have computed
static_model.py       a table of vectors, the sum of which is the vector of a text; its tokens
onnx_model.py         all-MiniLM-L6-v2 and other graphs in onnxruntime
reader_model.py       an extractive question-answering model of the user
"""
