"""A backend of joblib whose batches are tasks.

    import joblib, hpcbatch.joblib
    with joblib.parallel_config(backend="hpcbatch", n_jobs=-1, cpus=1, memory="2G", time="10m"):
        joblib.Parallel()(joblib.delayed(fit)(parameters) for parameters in grid)

The keywords are those of `hpcbatch.Executor`. `n_jobs` is how many batches are handed in at a time: -1 as many as there
are, up to ten thousand; what runs when is decided where there is room. scikit-learn's `n_jobs` is the same.
"""

from __future__ import annotations

import pickle
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Callable

import joblib  # type: ignore[import,unused-ignore]  # it has no types

from .arrays import Arrays, Unseen
from .executor import Executor

if TYPE_CHECKING:

    class _Base:
        parallel: Any

        def __init__(self, **options: Any) -> None:
            ...

        def reset_batch_stats(self) -> None:
            ...

else:
    from joblib.parallel import AutoBatchingMixin, ParallelBackendBase

    class _Base(AutoBatchingMixin, ParallelBackendBase):
        pass


_AS_MANY_AS_THERE_ARE = 10_000


def _run(batch: bytes) -> list[Any]:
    # One function for all batches: calls of the same function share a task where they are quick.
    return list(pickle.loads(batch)())


class Backend(_Base):
    """What `joblib.parallel_config(backend="hpcbatch")` makes; one thread at a time, as joblib's own."""

    default_n_jobs: int = -1
    supports_retrieve_callback: bool = True

    def __init__(
        self, nesting_level: int | None = None, inner_max_num_threads: int | None = None, **options: Any
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._options = options
        self._executor: Executor | None = None
        self._arrays: Arrays | None = None
        self._is_unseen = False  # a site does not see the folder of the arrays

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return _AS_MANY_AS_THERE_ARE if n_jobs is None or n_jobs < 0 else n_jobs

    def configure(
        self,
        n_jobs: int | None = -1,
        parallel: Any = None,
        max_nbytes: int | None = 1_000_000,
        mmap_mode: str | None = "r",
        temp_folder: str | None = None,
        **more: Any,
    ) -> int:
        """`max_nbytes`, `mmap_mode`, `temp_folder`: as of joblib.Parallel; the folder is to be seen by the nodes."""
        self.parallel = parallel
        self._executor = Executor(**{**self._options, **({"directory": temp_folder} if temp_folder else {})})
        self._arrays = Arrays(self._executor.folder_of("arrays"), max_nbytes, mmap_mode)
        return self.effective_n_jobs(n_jobs)

    def submit(
        self, func: Callable[[], list[Any]], callback: Callable[[Future[Any]], object] | None = None
    ) -> Future[Any]:
        future: Future[Any] = Future()
        if callback is not None:
            future.add_done_callback(callback)
        self._hand_in(func, future, self._is_unseen)
        return future

    def _hand_in(self, func: Callable[[], list[Any]], future: Future[Any], by_value: bool) -> None:
        executor, arrays = self._executor, self._arrays
        assert executor is not None and arrays is not None
        batch, needed = arrays.pickled(func, by_value)

        def ended(of_executor: Future[Any]) -> None:
            arrays.done(needed)
            try:
                result = of_executor.result()
            except Unseen:
                self._is_unseen = True
                self._hand_in(func, future, True)
            except CancelledError:
                future.cancel()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        executor.submit(_run, batch).add_done_callback(ended)

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def terminate(self) -> None:
        self._end(cancel=False)
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        self._end(cancel=True)
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def _end(self, cancel: bool) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=not cancel, cancel_futures=cancel)


joblib.register_parallel_backend("hpcbatch", Backend)
