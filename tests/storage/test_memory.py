import gc

from graphrag_index.storage.memory import collect_garbage_seldom


def test_many_rows_are_made_without_a_collection():
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        collect_garbage_seldom()
        gc.collect()
        before = gc.get_stats()[0]["collections"]

        rows = [[number] for number in range(20_000)]

        assert gc.get_stats()[0]["collections"] == before
        assert len(rows) == 20_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
