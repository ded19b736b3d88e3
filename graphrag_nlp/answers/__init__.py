"""Answers without a model: sentences by fitted weights or for coverage; counts."""
