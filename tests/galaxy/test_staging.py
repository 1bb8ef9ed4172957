"""A job for a site that does not see Galaxy's directories, without Galaxy and engine: packed, run by its command, put back."""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / folder) for folder in ("galaxy", "python")]
from hpcbatch_galaxy import staged_files, staging, words  # noqa: E402

pytestmark = pytest.mark.pure

ENDED = "galaxy_7.ec"
KEPT = [ENDED, "galaxy_7.o", "galaxy_7.e"]


class Job:
    """A job's directory as Galaxy leaves it, and the directory that a pilot gives to its task."""

    def __init__(self, folder, script):
        self.here, self.there = folder / "jobs" / "7", folder / "far" / "task"
        for name in ("outputs", "working", "configs", "home", "_working"):
            (self.here / name).mkdir(parents=True)
        self.tool = folder / "toolbox"
        self.tool.mkdir()
        self.places = staging.Places(str(self.here), str(self.tool))
        (self.here / "galaxy_7.sh").write_text(
            f"#!/bin/sh\ncd {self.here}/working || exit\n{script}\necho $? > {self.here}/{ENDED}\n"
        )
        (self.here / "galaxy_7.sh").chmod(0o755)

    def run(self, collected=False, told="galaxy.json"):
        """The exit code and what the task said; its directory is made anew, as for another try."""
        staged_files.name_files_of_folders(self.places)
        marked = staged_files.pack_job(self.places)
        if staged_files.names_tool(self.places):
            staged_files.pack_tool(self.places)
        self.task = staging.task_of({}, self.places, "galaxy_7.sh", KEPT, marked, collected, told, "g7")
        shutil.rmtree(self.there, ignore_errors=True)
        for name, path in self.task["inputs"].items():
            (self.there / name).parent.mkdir(parents=True, exist_ok=True)
            (self.there / name).symlink_to(path)
        hidden = self.here.with_name("hidden")
        packed = [name for name in self.task["inputs"] if self.task["inputs"][name].startswith(str(self.here))]
        for name in packed:  # as content, because the job's directory is out of sight while it runs
            (self.there / name).unlink()
            shutil.copy(self.task["inputs"][name], self.there / name)
        self.here.rename(hidden)
        done = subprocess.run(self.task["command"], cwd=self.there, capture_output=True, text=True, timeout=60)
        hidden.rename(self.here)
        if done.returncode == 0:
            shutil.copy(self.there / staging.RESULT, self.task["outputs"][staging.RESULT])
        return done

    def ran(self, **how):
        done = self.run(**how)
        assert (done.returncode, done.stderr) == (0, ""), done
        staged_files.put_back(str(self.here), KEPT)

    def text(self, name):
        return (self.here / name).read_text()


def test_a_path_is_marked_where_it_ends():
    marks = {"/g/jobs/1": staging.MARK, "/g/files/d_1.dat": staging.MARK + "/inputs/d_1.dat", "/g/jobs/1/sub": "/sub"}
    said = (
        b"cd /g/jobs/1; cat '/g/jobs/1/x' /g/jobs/12 /g/jobs/1.old \"/g/files/d_1.dat\" /g/jobs/1/sub /g/jobs/1/subs."
        b" In /g/jobs/1. \xff/g/jobs/1"
    )
    assert staging.marked(said, marks).replace(staging.MARK.encode(), b"@") == (
        b"cd @; cat '@/x' /g/jobs/12 /g/jobs/1.old \"@/inputs/d_1.dat\" /sub @/subs. In @. \xff@"
    )
    assert staging.marked(b"as it is", {}) == b"as it is"


def test_each_input_has_a_name_of_its_own():
    places = staging.Places("/jobs/7")
    assert places.input("/a/dataset_1.dat") == places.input("/a/dataset_1.dat") == "/jobs/7/inputs/dataset_1.dat"
    assert places.input("/b/dataset_1.dat") == "/jobs/7/inputs/2/dataset_1.dat"
    assert places.folder("/a/dataset_1_files") == "/jobs/7/inputs/dataset_1_files"
    assert places.inputs == {"inputs/dataset_1.dat": "/a/dataset_1.dat", "inputs/2/dataset_1.dat": "/b/dataset_1.dat"}
    assert places.folders == {"inputs/dataset_1_files": "/a/dataset_1_files"}
    assert places.marks()["/b/dataset_1.dat"] == staging.MARK + "/inputs/2/dataset_1.dat"


@pytest.mark.parametrize(
    "fact, says",
    [
        ("galaxy_python", "Galaxy's own Python"),
        ("interactive", "cannot be reached"),
        ("cwl", "CWL"),
        ("remote_evaluation", "remote"),
        ("split", "splits"),
    ],
)
def test_what_cannot_run_there_is_refused(fact, says):
    staging.check_job(set())
    with pytest.raises(words.Refusal) as refusal:
        staging.check_job({fact})
    assert says in str(refusal.value) and "stage: copy" in str(refusal.value)


def test_a_tools_directory_that_is_too_large_is_refused():
    staging.check_tool_files("/t", staging.MOST_TOOL_FILES, staging.MOST_TOOL_BYTES)
    for count, size in ((staging.MOST_TOOL_FILES + 1, 1), (1, staging.MOST_TOOL_BYTES + 1)):
        with pytest.raises(words.Refusal, match="required_files"):
            staging.check_tool_files("/t", count, size)


def test_a_job_finds_its_files_and_leaves_its_outputs(tmp_path):
    (tmp_path / "one.dat").write_text("one\n")
    (tmp_path / "one_files" / "deep").mkdir(parents=True)
    (tmp_path / "one_files" / "deep" / "more").write_text("more\n")
    job = Job(tmp_path, "")
    (job.tool / "count.sh").write_text('echo counted "$1"\n')
    (job.tool / "test-data").mkdir()
    (job.tool / "test-data" / "large").write_text("not this\n")
    one, extra = job.places.input(str(tmp_path / "one.dat")), job.places.folder(str(tmp_path / "one_files"))
    (job.here / "configs" / "c1").write_text(f"out={job.here}/outputs/d.dat")
    (job.here / "outputs" / "d.dat").touch()
    (job.here / "outputs" / "d.dat").chmod(0o600)
    (job.here / "galaxy_7.sh").write_text(
        f"""#!/bin/sh
cd '{job.here}/working' || exit
. ../configs/c1
cat {one} {extra}/deep/more > "$out"
sh {job.tool}/count.sh x >> "$out"
ls -A .. ../tool | tr '\\n' ' ' > ../outputs/tool_stdout
echo wrong >&2; echo scratch > scratch; echo 3 > ../{ENDED}
exit 3
"""
    )
    done = job.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    staged_files.put_back(str(job.here), KEPT)
    assert job.text("outputs/d.dat") == "one\nmore\ncounted x\n" and [job.text(name) for name in KEPT] == [
        "3\n",
        "",
        "wrong\n",
    ]
    assert "_working" not in job.text("outputs/tool_stdout") and "test-data" not in job.text("outputs/tool_stdout")
    assert not (job.here / "working" / "scratch").exists() and not (job.here / staging.RESULT).exists()
    # Galaxy's own is as it was.
    assert job.text("configs/c1") == f"out={job.here}/outputs/d.dat"


def test_a_tools_files_go_where_the_job_names_them(tmp_path):
    job = Job(tmp_path, "sh ../tool_script.sh")
    (job.tool / "large").write_text("not this\n")
    (job.here / "tool_script.sh").write_text(f"echo {job.here}/tool_script.sh {job.here}/tools > ../outputs/a")
    job.ran()
    assert (
        staging.TOOL not in job.task["inputs"]
        and job.text("outputs/a") == f"{job.there}/tool_script.sh {job.there}/tools\n"
    )
    (job.here / "tool_script.sh").write_text(f"cat '{job.places.tool}/large' > ../outputs/a")
    job.ran()
    assert job.text("outputs/a") == "not this\n"


def test_working_comes_back_where_it_is_looked_at(tmp_path):
    job = Job(tmp_path, "mkdir parts && echo a > parts/a && echo b > b")
    job.ran(collected=True)
    assert job.text("working/parts/a") == "a\n" and job.text("working/b") == "b\n"


def test_working_comes_back_where_the_tool_tells_of_its_outputs(tmp_path):
    job = Job(tmp_path, "echo b > b; echo {} > told.json")
    job.ran(told="told.json")
    assert job.text("working/b") == "b\n"


def test_links_come_back_as_files_or_not_at_all(tmp_path):
    (tmp_path / "large.dat").write_text("large\n")
    job = Job(tmp_path, "")
    large = job.places.input(str(tmp_path / "large.dat"))
    (job.here / "galaxy_7.sh").write_text(
        f"""#!/bin/sh
cd {job.here}/working || exit
echo own > own; ln -s own link; ln -s $PWD/own 'a
b'; ln -s {large} input; ln -s /etc/passwd elsewhere; ln -s nothing dangling; ln -s .. loop; mkfifo pipe
ln own hard; rm -f ../outputs/d.dat; ln -s {large} ../outputs/d.dat
echo 0 > ../{ENDED}
"""
    )
    job.ran(collected=True)
    assert sorted(os.listdir(job.here / "working")) == ["a\nb", "hard", "link", "own"]
    assert job.text("working/link") == job.text("working/a\nb") == job.text("working/hard") == "own\n"
    assert job.text("outputs/d.dat") == "large\n" and not (job.here / "outputs" / "d.dat").is_symlink()


def test_a_script_that_does_not_come_to_its_end_fails(tmp_path):
    job = Job(tmp_path, "kill -9 $$")
    done = job.run()
    assert done.returncode == 97 and "did not come to its end" in done.stderr


def test_a_directory_that_a_shell_would_take_apart_is_refused(tmp_path):
    job = Job(tmp_path, "true")
    job.there = tmp_path / "it's far" / "task"
    done = job.run()
    assert done.returncode == 97 and "name a workspace without blanks and quotes" in done.stderr


def test_a_tool_that_many_jobs_have_goes_once(tmp_path):
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        job = Job(tmp_path / name, "")
        (job.tool / "run.sh").write_text("echo\n")
        (job.tool / "run.sh").chmod(0o755)
        os.utime(job.tool / "run.sh", (0, len(contents)))
        staged_files.pack_tool(job.places)
        contents.append((job.here / staging.TOOL).read_bytes())
    assert contents[0] == contents[1]


def test_what_came_back_is_put_back_once_and_again_after_a_crash(tmp_path, monkeypatch):
    job = Job(tmp_path, "echo a > ../outputs/a; echo b > ../outputs/b")
    job.run()

    def crash(target, source, mode):
        if target.endswith("b"):
            raise KeyboardInterrupt
        replace(target, source, mode)

    replace = staged_files._replace
    monkeypatch.setattr(staged_files, "_replace", crash)
    with pytest.raises(KeyboardInterrupt):
        staged_files.put_back(str(job.here), KEPT)
    monkeypatch.undo()
    staged_files.put_back(str(job.here), KEPT)
    assert job.text("outputs/a") == "a\n" and job.text("outputs/b") == "b\n"
    (job.here / "outputs" / "a").unlink()  # Galaxy has taken it
    staged_files.put_back(str(job.here), KEPT)
    assert not (job.here / "outputs" / "a").exists()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x",
        "../x",
        "outputs/../../x",
        "tool_script.sh",
        "galaxy_7.sh",
        "x",
        "__instrument_x/y",
        "outputs/a/../../../x",
    ],
)
def test_nothing_is_put_beside_the_results(tmp_path, name):
    job = Job(tmp_path, "")
    with tarfile.open(job.here / staging.RESULT, "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(staged_files.Unsafe, match="no place of a job's results"):
        staged_files.put_back(str(job.here), KEPT)


def test_nothing_is_put_through_a_link(tmp_path):
    job = Job(tmp_path, "")
    (job.here / "working" / "out").symlink_to(tmp_path)
    (job.here / "outputs" / "file").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("mine\n")
    with tarfile.open(job.here / staging.RESULT, "w") as archive:
        for name in ("outputs/file", "working/out/x"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(staged_files.Unsafe, match="is a link"):
        staged_files.put_back(str(job.here), KEPT)
    assert (tmp_path / "file").read_text() == "mine\n" and job.text("outputs/file") == "x"


def came_back(job, *entries):
    """An archive of (name, kind, size, link, bytes) that no program would make."""
    with open(job.here / staging.RESULT, "wb") as file:
        for name, kind, size, link, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, size, link
            file.write(entry.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
        file.write(bytes(1024))


def test_what_comes_back_does_not_unpack_to_more_than_the_disk_has(tmp_path):
    job = Job(tmp_path, "")
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 40)
    subprocess.run(
        ["tar", "-C", tmp_path, "--transform", "s:^:outputs/:", "-Scf", job.here / staging.RESULT, "hole"], check=True
    )
    with pytest.raises(staged_files.Unsafe, match="unpacks to more than"):
        staged_files.put_back(str(job.here), KEPT)
    block = b"x" * (1 << 20)
    first = ("outputs/0", tarfile.REGTYPE, len(block), "", block)
    came_back(job, first, *[(f"outputs/{n}", tarfile.LNKTYPE, 0, "outputs/0", b"") for n in range(1, 2000)])
    with pytest.raises(staged_files.Unsafe, match="unpacks to more than"):
        staged_files.put_back(str(job.here), KEPT)
    for path in (job.here / "outputs").iterdir():
        path.unlink()
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 29)
    subprocess.run(
        ["tar", "-C", tmp_path, "--transform", "s:^:outputs/:", "-Scf", job.here / staging.RESULT, "hole"], check=True
    )
    staged_files.put_back(str(job.here), KEPT)
    put = (job.here / "outputs" / "hole").stat()
    assert put.st_size == 1 << 29 and put.st_blocks < 1000, "holes stay holes"


def test_another_name_of_a_file_leads_nowhere_else(tmp_path):
    job = Job(tmp_path, "")
    (tmp_path / "secret").write_text("secret")
    (job.here / "outputs" / "link").symlink_to(tmp_path / "secret")
    (job.here / "outputs" / "away").symlink_to(tmp_path)
    os.mkfifo(job.here / "outputs" / "fifo")
    for name in ("outputs/link", "outputs/away/secret", "outputs/fifo"):
        came_back(job, ("outputs/taken", tarfile.LNKTYPE, 0, name, b""))
        with pytest.raises((OSError, staged_files.Unsafe), match="not followed|is a link|no regular file"):
            staged_files.put_back(str(job.here), KEPT)
        assert not (job.here / "outputs" / "taken").exists()


def test_a_fifo_in_the_way_holds_nobody_up(tmp_path):
    job = Job(tmp_path, "")
    os.mkfifo(job.here / "outputs" / "a.hpcbatch-new")
    came_back(job, ("outputs/a", tarfile.REGTYPE, 1, "", b"x"))
    staged_files.put_back(str(job.here), KEPT)
    assert job.text("outputs/a") == "x"
    os.mkfifo(job.here / staging.RESULT)
    with pytest.raises(OSError, match="no regular file"):
        staged_files.put_back(str(job.here), KEPT)
