"""The files of a staged job: packed before it goes, put back into its directory when it has come back."""

import contextlib
import io
import os
import tarfile

from hpcbatch.regular_file import open_regular

from . import staging

# The same content has the same archive, which then goes to a site once.
_ANY_TIME = 978_307_200
_BLOCK = 1 << 20
# What comes back may unpack to so many times its size, and so many bytes more.
_TIMES, _AT_LEAST = 4, 1 << 30


class Unsafe(Exception):
    """An archive that names what it may not."""


def files_below(folder):
    """Paths of the regular files, relative to it."""
    found = []
    for at, _, names in os.walk(folder):
        found += [
            os.path.relpath(os.path.join(at, name), folder) for name in names if os.path.isfile(os.path.join(at, name))
        ]
    return sorted(found)


def name_files_of_folders(places):
    """The engine brings files."""
    for name, folder in places.folders.items():
        for file in files_below(folder):
            places.inputs[f"{name}/{file}"] = os.path.join(folder, file)


def pack_job(places):
    """Writes the archive of the job's directory, and gives the files in it that have marks."""
    marks, found = places.marks(), []

    def add(archive, name):
        path = os.path.join(places.job_directory, name)
        if os.path.islink(path):
            return
        if os.path.isdir(path):
            archive.addfile(_entry(name, tarfile.DIRTYPE, 0, True))
            for below in sorted(os.listdir(path)):
                add(archive, f"{name}/{below}")
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                content = file.read()
            new = staging.marked(content, marks)
            if new != content:
                found.append(name)
            archive.addfile(_entry(name, tarfile.REGTYPE, len(new), os.access(path, os.X_OK)), io.BytesIO(new))

    with _written(os.path.join(places.job_directory, staging.JOB)) as archive:
        for name in sorted(filter(staging.goes_along, os.listdir(places.job_directory))):
            add(archive, name)
        for name in ("outputs", "working", "configs"):  # before a job was run there may be none
            if not os.path.isdir(os.path.join(places.job_directory, name)):
                archive.addfile(_entry(name, tarfile.DIRTYPE, 0, True))
    return found


def names_tool(places):
    """Whether the packed job says anything of its tool's directory."""
    with tarfile.open(os.path.join(places.job_directory, staging.JOB)) as archive:
        return any(staging.names_tool(archive.extractfile(entry).read()) for entry in archive if entry.isreg())


def pack_tool(places, named=None):
    """Writes the archive of the tool's files: those that it has named, else all beside it.  Raises Refusal."""
    names = (
        sorted(named)
        if named is not None
        else [one for one in files_below(places.tool_directory) if staging.is_tools_own(one)]
    )
    paths = [os.path.join(places.tool_directory, name) for name in names]
    if named is None:
        staging.check_tool_files(places.tool_directory, len(paths), sum(os.path.getsize(path) for path in paths))
    target = os.path.join(places.job_directory, staging.TOOL)
    with _written(target) as archive:
        for name, path in zip(names, paths):
            with open(path, "rb") as file:
                archive.addfile(
                    _entry(name, tarfile.REGTYPE, os.fstat(file.fileno()).st_size, os.access(path, os.X_OK)), file
                )
    places.inputs[staging.TOOL] = target


def put_back(job_directory, kept):
    """What the task has left, into the job's directory; `kept` as in staging.is_left.  Raises Unsafe, OSError or tarfile.TarError.

    May be done again after a crash in its middle, and is done once: what Galaxy has taken away from there since does not come again.
    """
    path = os.path.join(job_directory, staging.RESULT)
    try:
        packed = open_regular(path)
    except FileNotFoundError:
        return
    # Names that share a file, and holes, cost the task nothing.
    left = _TIMES * os.fstat(packed.fileno()).st_size + _AT_LEAST
    with packed, tarfile.open(fileobj=packed, mode="r:") as archive:
        for entry in archive:
            if not (entry.isreg() or entry.isdir() or entry.islnk()):
                continue  # a pipe or the like: nobody collects it
            names = [entry.name, entry.linkname] if entry.islnk() else [entry.name]
            for name in names:
                if not staging.is_left(name.rstrip("/"), kept):
                    raise Unsafe(f"what came back has {name!r}, which is no place of a job's results")
            target = os.path.join(job_directory, entry.name)
            if entry.isdir():
                _make_folder(job_directory, entry.name)
                continue
            _make_folder(job_directory, os.path.dirname(entry.name))
            if entry.islnk():
                _make_folder(job_directory, os.path.dirname(entry.linkname))
                source = open_regular(os.path.join(job_directory, entry.linkname))
                left -= os.fstat(source.fileno()).st_size
            else:
                source = archive.extractfile(entry)
                left -= entry.size
            with source:
                if left < 0:
                    raise Unsafe(f"what came back unpacks to more than {_TIMES} times its size")
                _replace(target, source, entry.mode)
    os.unlink(path)


def _make_folder(root, name):
    """Never through a link: it could lead elsewhere."""
    at = root
    for part in name.split("/") if name else ():
        at = os.path.join(at, part)
        if os.path.islink(at):
            raise Unsafe(f"{at} is a link, where a folder of what came back should be")
        os.makedirs(at, exist_ok=True)


def _replace(target, source, mode):
    new = target + ".hpcbatch-new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if mode & 0o100 else 0o666), "wb") as file:
        _copy(source, file)
    os.replace(new, target)


def _copy(source, file):
    """Holes stay holes: they may be larger than the disk."""
    while block := source.read(_BLOCK):
        if block.count(0) == len(block):
            file.seek(len(block), os.SEEK_CUR)
        else:
            file.write(block)
    file.truncate(file.tell())


def _entry(name, kind, size, may_run):
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.mode, entry.mtime = kind, size, 0o755 if may_run else 0o644, _ANY_TIME
    return entry


class _written:
    """An archive that is there as a whole or not at all."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._archive = tarfile.open(self._path + ".new", "w", format=tarfile.GNU_FORMAT)
        return self._archive

    def __exit__(self, kind, *_):
        self._archive.close()
        if kind is None:
            os.replace(self._path + ".new", self._path)
