"""Worker of a run that many machines share: it leads the run, or works for the leader.

Every worker is started in the same way. The first one takes the lease of the leader, and runs the
workflow. The others make its shards and send its requests. If the leader is killed, another worker
takes its lease and runs the workflow: it finds the results that are there.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_index.errors import GraphRAGError
from graphrag_index.pipeline.follower import Follower
from graphrag_index.pipeline.shared_calls import CallSender
from graphrag_index.pipeline.shared_runner import ShardMaker
from graphrag_index.pipeline.task_board import LostLeadError, Task, TaskBoard
from graphrag_index.pipeline.tasks import LEADER, Ending, Result
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.leases import Leases


@dataclass(frozen=True)
class Lead:
    """The means of the worker that leads: the tasks of the run, and the processes for shards."""

    board: TaskBoard
    maker: ShardMaker


class Worker:
    """One worker of the runs in a bucket. `tell` gets lines for the user."""

    def __init__(
        self, leases: Leases, maker: ShardMaker, follower: Follower, tell: Callable[[str], None]
    ) -> None:
        self._leases, self._maker, self._follower, self._tell = leases, maker, follower, tell

    def run(self, lead: Callable[[Lead], Ending]) -> Ending:
        """Work until the run has ended; `lead` runs the workflow with the other workers.

        An error that `lead` raises as a GraphRAGError would meet every other worker too, so all
        workers end with it. After another exception, such as a full disk, another worker leads.
        """
        is_told = False
        while True:
            lease = self._leases.take(LEADER)
            if lease is not None:
                self._tell("This worker leads the run.")
                board = TaskBoard(self._leases, lease, self._make_part, self._maker.n)
                ending: Ending | None = None
                try:
                    ending = lead(Lead(board, self._maker))
                    return ending._replace(message="")  # It has told the user already.
                except LostLeadError as error:
                    self._tell(str(error))
                except GraphRAGError as error:
                    ending = Ending(error.exit_code, str(error))
                    raise
                finally:
                    board.close(ending)
                    self._leases.release(lease)
                continue
            if not is_told:
                self._tell("Another worker leads the run; this one works for it.")
                is_told = True
            ending = self._follower.work()
            if ending is not None:
                n_done = self._follower.n_done
                self._tell(f"The run has ended; this worker has done {n_done:,} of its tasks.")
                return ending

    def _make_part(self, task: Task) -> Result:
        assert task.function is not None
        return self._maker.make(task.function, task.content, task.name)


@contextmanager
def open_worker(
    address: str,
    models: Mapping[str, ModelSettings],
    n_workers: int,
    seconds: float,
    tell: Callable[[str], None],
) -> Iterator[Worker]:
    """Open a worker of the runs whose output is in a bucket, with this number of processes."""
    with (
        TemporaryDirectory(prefix="graphrag-index-") as folder,
        closing(Leases(Bucket(address), seconds)) as leases,
        closing(CallSender(models)) as sender,
        closing(ShardMaker(n_workers, Path(folder))) as maker,
        closing(Follower(leases, maker, sender, Path(folder))) as follower,
    ):
        yield Worker(leases, maker, follower, tell)
