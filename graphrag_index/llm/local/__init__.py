"""Embedding models that run on this machine.

local_models.py   finds and loads a model by its name in the settings
onnx_model.py     a sentence transformer in onnxruntime
model_package.py  the download of a model
"""
