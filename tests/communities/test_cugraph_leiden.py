"""The engine cugraph around a stand-in for cuGraph, which needs a GPU.

The stand-in has the signatures of pylibcugraph 26.10, and checks what they demand of arrays.
"""

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from graphrag_index.communities import leiden
from graphrag_index.communities.cugraph_leiden import load_cugraph, partition_on_gpu
from graphrag_index.communities.leiden import build_hierarchy, partition_with_graspologic
from graphrag_index.communities.simple_graph import SparseRows, build_sparse_rows
from graphrag_index.errors import SettingsError, StepError
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.steps.create_communities import create_communities
from tests.fixtures.small_graphs import graph_of, parts, ring_of_rings

SETTINGS = CreateCommunities(engine="cugraph")


class DeviceArray(NamedTuple):
    """An array on the GPU: nothing reads it but `asnumpy`."""

    content: npt.NDArray[Any]


class GraphProperties(NamedTuple):
    is_symmetric: bool = False
    is_multigraph: bool = False


class SGGraph:
    """A graph of pylibcugraph. Its nodes lie in another order, as after renumbering."""

    def __init__(
        self,
        resource_handle: object,
        graph_properties: GraphProperties,
        src_or_offset_array: DeviceArray,
        dst_or_index_array: DeviceArray,
        weight_array: DeviceArray | None = None,
        store_transposed: bool = False,
        renumber: bool = False,
        do_expensive_check: bool = False,
        edge_id_array: DeviceArray | None = None,
        edge_type_array: DeviceArray | None = None,
        input_array_format: str = "COO",
        vertices_array: DeviceArray | None = None,
        drop_self_loops: bool = False,
        drop_multi_edges: bool = False,
        symmetrize: bool = False,
    ) -> None:
        assert isinstance(resource_handle, StandIn.ResourceHandle)
        assert input_array_format == "CSR"
        assert graph_properties == (True, False)
        offsets, indices = src_or_offset_array.content, dst_or_index_array.content
        assert weight_array is not None
        assert offsets.dtype == indices.dtype
        assert offsets.dtype in (np.int32, np.int64)
        assert weight_array.content.dtype in (np.float32, np.float64)
        assert len(indices) == len(weight_array.content) == offsets[-1]
        self.rows = SparseRows(
            offsets.astype(np.int64), indices.astype(np.int32), weight_array.content
        )


class StandIn:
    """The module pylibcugraph. Its Leiden is that of the engine native."""

    GraphProperties, SGGraph = GraphProperties, SGGraph

    class ResourceHandle:
        pass

    calls: int = 0
    error: Exception | None = None

    def leiden(
        self,
        resource_handle: object,
        random_state: int | None,
        graph: SGGraph,
        max_level: int,
        resolution: float,
        theta: float,
        do_expensive_check: bool,
    ) -> tuple[DeviceArray, DeviceArray, float]:
        assert max_level > 0
        self.calls += 1
        if self.error is not None:
            raise self.error
        settings = CreateCommunities(
            resolution=resolution, scale_resolution=False, seed=random_state
        )
        labels = partition_with_graspologic(graph.rows, settings, 0)
        nodes = np.random.default_rng(1).permutation(graph.rows.n_nodes).astype(np.int32)
        return DeviceArray(nodes), DeviceArray(labels[nodes].astype(np.int32)), 0.5


class Runtime:
    """The runtime of CUDA on a machine with some GPUs; None: without a driver."""

    def __init__(self, n_devices: int | None) -> None:
        self.n_devices = n_devices

    def getDeviceCount(self) -> int:  # noqa: N802
        if self.n_devices is None:
            raise RuntimeError("cudaErrorInsufficientDriver")
        return self.n_devices


class StandInCuPy:
    """The module cupy."""

    def __init__(self, n_devices: int | None) -> None:
        self.cuda = type("cuda", (), {"runtime": Runtime(n_devices)})

    def asarray(self, array: npt.NDArray[Any], dtype: Any) -> DeviceArray:
        return DeviceArray(array.astype(dtype))

    def asnumpy(self, array: DeviceArray) -> npt.NDArray[Any]:
        return array.content


@pytest.fixture
def cugraph(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "pylibcugraph", stand_in)
    monkeypatch.setitem(sys.modules, "cupy", StandInCuPy(1))
    return stand_in


def test_a_graph_reaches_the_gpu_and_its_parts_come_back(cugraph: StandIn) -> None:
    # Node 4 has no edge.
    graph = graph_of(9, (0, 1), (1, 2), (0, 2), (3, 5), (5, 6), (3, 6), (2, 3), (7, 8, 0.5))
    labels = partition_on_gpu(build_sparse_rows(graph), 1.0, seed=7)
    assert parts(labels) == {frozenset(part) for part in ([0, 1, 2], [3, 5, 6], [4], [7, 8])}
    assert cugraph.calls == 1


def test_the_hierarchy_is_that_of_its_leiden_and_small_parts_stay_on_the_cpu(
    cugraph: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"max_cluster_size": 3}
    native = build_hierarchy(ring_of_rings(), CreateCommunities(**small))
    n_calls = []
    for min_edges in (0, 50, 100_000):
        monkeypatch.setattr(leiden, "MIN_EDGES_FOR_GPU", min_edges)
        cugraph.calls = 0
        levels = build_hierarchy(ring_of_rings(), SETTINGS.model_copy(update=small))
        assert [one.tolist() for one in levels] == [one.tolist() for one in native]
        n_calls.append(cugraph.calls)
    # All parts, the whole graph of 84 edges only, and none.
    assert n_calls[0] > n_calls[1] == 1
    assert n_calls[2] == 0


def test_a_real_gpu_finds_dense_groups() -> None:
    try:
        load_cugraph()
    except SettingsError as error:
        pytest.skip(str(error))
    # 50 groups of 6 nodes in a ring, and node 300 without edges.
    inside = [(6 * g + a, 6 * g + b) for g in range(50) for a in range(6) for b in range(a)]
    between = [(6 * g, (6 * g + 7) % 300) for g in range(50)]
    rows = build_sparse_rows(graph_of(301, *inside, *between))
    labels = partition_on_gpu(rows, 5.0, seed=7)
    groups = {frozenset(range(6 * g, 6 * g + 6)) for g in range(50)}
    assert parts(labels) == {*groups, frozenset([300])}


@pytest.mark.parametrize("error", [MemoryError("out of memory"), RuntimeError("std::bad_alloc")])
def test_a_failure_of_the_gpu_is_told(cugraph: StandIn, error: Exception) -> None:
    cugraph.error = error
    rows = build_sparse_rows(graph_of(2, (0, 1)))
    with pytest.raises(StepError, match=r"cuGraph has failed on a graph of 2 nodes and 1 edges: "):
        partition_on_gpu(rows, 1.0, seed=1)


@pytest.mark.parametrize("n_devices", [0, None])
def test_a_machine_without_a_gpu_is_refused(
    cugraph: StandIn, n_devices: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", StandInCuPy(n_devices))
    with pytest.raises(SettingsError, match="needs a GPU of NVIDIA, and this machine shows none"):
        load_cugraph()


def test_a_machine_without_cugraph_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    check = create_communities.check
    assert check is not None
    project: Any = None
    check(CreateCommunities(), project)
    with pytest.raises(SettingsError, match=r"not installed .*: pip install pylibcugraph-cu13, or"):
        check(SETTINGS, project)
