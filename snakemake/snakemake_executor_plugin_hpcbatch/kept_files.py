"""Files that tasks read and that this Snakemake makes for them: kept for as long as any task of theirs may run.

Snakemake removes its own folder of temporary files when it leaves, and a task may run long after that.
"""

import hashlib
import os
import shutil

_LIVING = ("running", "waiting", "held")


class KeptFiles:
    """In `.snakemake/hpcbatch/kept`, a folder for each run; `name` is this working folder's at the engine."""

    def __init__(self, persistence, run, client, name):
        self._base = os.path.join(os.path.abspath(persistence), "hpcbatch", "kept")
        self._folder = os.path.join(self._base, run)
        self._client = client
        self._name = name

    def folder(self, name):
        path = os.path.join(self._folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, text):
        """The path of a file that has that text."""
        data = text.encode(errors="surrogateescape")
        path = os.path.join(self.folder("texts"), hashlib.blake2b(data, digest_size=12).hexdigest())
        if not os.path.exists(path):
            with open(path + ".new", "wb") as file:
                file.write(data)
            os.rename(path + ".new", path)
        return path

    def remove(self):
        """Those of all runs, where no task of this working folder is left.  Errors are the client's."""
        if os.path.isdir(self._base) and not any(
            self._client.get("/v1/tasks", client=self._name, state=state, limit=1)["tasks"] for state in _LIVING
        ):
            shutil.rmtree(self._base, ignore_errors=True)


def keep_sources(cache, kept):
    """Lets `cache`, Snakemake's of sources from elsewhere, keep them where a task finds them later too."""
    try:
        old = str(cache.runtime_cache_path)
        new = kept.folder("sources")
        if old != new:
            shutil.copytree(old, new, dirs_exist_ok=True)
            cache._runtime_cache_path = new
    except (AttributeError, OSError):
        pass  # another Snakemake: each of its jobs finds or fetches its own
