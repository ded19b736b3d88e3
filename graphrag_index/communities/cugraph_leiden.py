"""Leiden on a GPU by NVIDIA's cuGraph, imported only if the engine `cugraph` is chosen.

The parameters and results are those of cuGraph 26.10 [1]_, with which it was run on an H200.

References
----------
.. [1] https://docs.nvidia.com/cugraph/latest/api_docs/api/plc/pylibcugraph.leiden/
"""

from typing import Any

import numpy as np

from graphrag_index.communities.simple_graph import Integers, SparseRows
from graphrag_index.errors import SettingsError, StepError

# Passes over ever smaller graphs; cuGraph stops earlier, when a pass improves nothing.
MAX_PASSES = 100


def load_cugraph() -> tuple[Any, Any]:
    """Import cuGraph and CuPy; raise SettingsError if they or a GPU are missing."""
    try:
        import cupy
        import pylibcugraph
    except ImportError as error:
        raise SettingsError(
            f"The engine cugraph is not installed ({error}): pip install pylibcugraph-cu13, or "
            "pylibcugraph-cu12 for CUDA 12, or choose another create_communities.engine."
        ) from None
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError:  # there is no driver
        n_devices = 0
    if not n_devices:
        raise SettingsError(
            "The engine cugraph needs a GPU of NVIDIA, and this machine shows none: choose another "
            "create_communities.engine, or run on a machine with a GPU."
        )
    return pylibcugraph, cupy


def partition_on_gpu(rows: SparseRows, resolution: float, seed: int) -> Integers:
    """Partition a graph by modularity; return the label of each node, from 0 on.

    Raises StepError if the GPU fails, for example if its memory is short.
    """
    pylibcugraph, cupy = load_cugraph()
    # cuGraph has one type for nodes and for positions of edges.
    dtype = np.int32 if len(rows.indices) < np.iinfo(np.int32).max else np.int64
    try:
        handle = pylibcugraph.ResourceHandle()
        graph = pylibcugraph.SGGraph(
            resource_handle=handle,
            graph_properties=pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False),
            src_or_offset_array=cupy.asarray(rows.indptr, dtype=dtype),
            dst_or_index_array=cupy.asarray(rows.indices, dtype=dtype),
            weight_array=cupy.asarray(rows.weights, dtype=np.float64),
            store_transposed=False,
            # Inside, nodes are numbered by their degree; the result has their own numbers.
            renumber=True,
            do_expensive_check=False,
            input_array_format="CSR",
        )
        nodes, parts, _ = pylibcugraph.leiden(
            resource_handle=handle,
            random_state=seed,
            graph=graph,
            max_level=MAX_PASSES,
            resolution=resolution,
            theta=1.0,
            do_expensive_check=False,
        )
        labels = np.empty(rows.n_nodes, dtype=np.int64)
        labels[cupy.asnumpy(nodes)] = cupy.asnumpy(parts)
    except (MemoryError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise StepError(
            f"cuGraph has failed on a graph of {rows.n_nodes:,} nodes and "
            f"{len(rows.indices) // 2:,} edges: {text}. If the memory of the GPU is short, choose "
            "another create_communities.engine."
        ) from error
    return labels
