"""How a Snakemake that was killed and is started again finds what it had running.

Before a submit is sent, each of its jobs is marked in Snakemake's own way with the submit's key and its place there; what has
become of it the engine knows by the key.  So nothing is in between being sent and being known.
"""

import collections
import hashlib
import os
import re
import tempfile
import uuid

from hpcbatch.regular_file import read_regular

_LONGEST = 1000


def client_of(folder):
    """This working folder's name at the engine, drawn once and kept in `folder`, Snakemake's own: a key alone could be
    another engine's."""
    folder = os.path.join(folder, "hpcbatch")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "client")
    made, temporary = tempfile.mkstemp(dir=folder)
    with open(made, "w", encoding="ascii") as file:
        file.write("snakemake:" + uuid.uuid4().hex[:16] + "\n")
    try:
        os.link(temporary, path)  # of two at once one wins
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    return read_regular(path, _LONGEST).decode("ascii").strip()


class Mark(collections.namedtuple("Mark", "key place count is_direct fingerprint")):
    """A job's place in the submit that it was sent with, of so many, and what the job was then."""

    def text(self, client):
        return f"{client}/{self.key}/{self.place}.{self.count}/{'d' if self.is_direct else 's'}{self.fingerprint}"


def read_mark(text, client):
    """None for one that is not this folder's."""
    found = re.fullmatch(r"([^/]+)/([^/]+)/(\d+)\.(\d+)/([ds])(\w+)", text or "")
    if not found or found[1] != client:
        return None
    return Mark(found[2], int(found[3]), int(found[4]), found[5] == "d", found[6])


def fingerprint_of(job, persistence, image=None):
    """Of all that decides what a job makes, as far as Snakemake itself remembers it: code, parameters, inputs, outputs; and `image`, in
    which its task runs."""
    digest = hashlib.blake2b(digest_size=10)
    members = sorted(job.jobs, key=lambda one: sorted(map(str, one.output))) if job.is_group() else [job]
    for one in members:
        facts = [
            one.rule.name,
            sorted(map(str, one.input)),
            sorted(map(str, one.output)),
            str(sorted((one.wildcards_dict or {}).items())),
        ]
        for look in ("_code", "_params"):
            try:
                facts.append(str(getattr(persistence, look)(one.rule if look == "_code" else one)))
            except Exception:  # another Snakemake: less is compared
                facts.append("")
        try:
            source = one._path_to_source_file(one.rule.script or one.rule.notebook).get_path_or_uri()
            facts.append(str(os.stat(source).st_mtime_ns))
        except Exception:
            facts.append("")
        if image:
            facts.append(image)
        digest.update(repr(facts).encode(errors="surrogateescape"))
    return digest.hexdigest()
