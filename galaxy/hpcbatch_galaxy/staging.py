"""A Galaxy job at a site that sees none of Galaxy's directories: what goes there, what is done there, what comes back.  Pure.

The job's directory goes there as a whole and comes back as a whole, so that all of Galaxy before and after the job finds what it
always finds.  What the job's script and configuration files say of places of this machine is replaced by marks on the way, and the
marks by the task's own directory where it runs: nobody knows it earlier.
"""

import os
import posixpath
import re

from .words import Refusal

# Names in the task's directory.
JOB, TOOL, RESULT = "job.tar", "tool.tar", "out.tar"
TOOL_FOLDER, INPUTS = "tool", "inputs"
MARK = "/hpcbatch-stage-directory"
# Of the job's directory: what the task gets in other ways, or nobody needs there.
_STAYS = frozenset(("home", "tmp", "metadata", INPUTS, TOOL_FOLDER, JOB, TOOL, RESULT))
_NEVER_TOOLS = frozenset(("test-data", "__pycache__", ".git", ".hg"))
MOST_TOOL_FILES, MOST_TOOL_BYTES = 1000, 64 << 20
# What follows a path where it ends: `/data/1` is not meant by `/data/12`, nor by `/data/1.old`.
_GOES_ON = rb"(?![\w+~-]|\.\w)"
# All that a containerized job has to see lies in its directory, or is bound by the script below.
CONTAINER_VOLUMES = "$job_directory:rw"

# $1: the job's script; $2: where it writes its exit code; $3, $4: where what it prints goes; $5: `all` where all of working/ is looked
# at, else nothing; $6: the file in working/ that makes all of it looked at; the rest: files with marks.  Ends well whenever the
# script came to its end, because what failed has to come back too; what it says itself is why it did not.
SCRIPT = r"""
script=$1 ended=$2 out=$3 err=$4 collected=$5 told=$6
shift 6
fail() { echo "$1" >&2; exit 97; }
here=$(pwd -P)
case $here in
  *[!A-Za-z0-9_./+@%=-]*) fail "a Galaxy job cannot run in $here: name a workspace without blanks and quotes for this site" ;;
esac
tar -xmof job.tar || fail "cannot unpack the job's files: tar is needed, and room on the disk"
[ ! -e tool.tar ] || { mkdir -p tool && tar -xmof tool.tar -C tool; } || fail "cannot unpack the tool's files"
for file; do
  LC_ALL=C sed "s#/hpcbatch-stage-directory#$here#g" "$file" > marks.new && cat marks.new > "$file" || fail "cannot write $here/$file"
done
rm -f marks.new
# Inputs are links; a container sees what they lead to only where it is told to.
folders=$([ ! -d inputs ] || find inputs -type l -exec readlink -f {} \; | sed 's#/[^/]*$##' | sort -u | tr '\n' ',')
if [ -n "$folders" ]; then
  SINGULARITY_BIND=${SINGULARITY_BIND:+$SINGULARITY_BIND,}${folders%,}
  export SINGULARITY_BIND APPTAINER_BIND="$SINGULARITY_BIND"
fi
"./$script" > "$out" 2> "$err"
[ -e "$ended" ] || fail "the job's script did not come to its end"
# What is left as a link comes back as a file; a link to an input, to a folder or to elsewhere comes back from outputs/ at most.
find outputs working -type l -exec sh -c '
  here=$1
  shift
  for link; do
    to=$(readlink -f "$link")
    if [ -f "$to" ]; then
      case $link:$to in outputs/* | working/*:"$here"/working/* | working/*:"$here"/outputs/*) continue ;; esac
    fi
    rm -f "$link"
  done' sh "$here" {} +
set -- outputs "$ended" "$out" "$err"
for file in __instrument_*; do [ ! -f "$file" ] || set -- "$@" "$file"; done
if [ "$collected" = all ] || [ -e "working/$told" ]; then
  set -- "$@" working
else
  for folder in working/dataset_*_files; do [ ! -d "$folder" ] || set -- "$@" "$folder"; done
fi
tar -chf out.tar "$@"
[ $? -le 1 ] || fail "cannot pack what the job has left: is the disk full?"
"""


class Places:
    """Paths of this machine, and the names that they have below the job's directory where it runs."""

    def __init__(self, job_directory, tool_directory=None):
        self.job_directory = job_directory
        self.tool_directory = tool_directory
        self.inputs = {}  # name: path
        self.folders = {}  # name: path, of folders whose files are inputs
        self._names = {}  # path: name
        self._taken = set()

    def input(self, path):
        """Where the job finds that file."""
        return self._place(path, self.inputs)

    def folder(self, path):
        return self._place(path, self.folders)

    @property
    def tool(self):
        return posixpath.join(self.job_directory, TOOL_FOLDER)

    def marks(self):
        """{path: what stands for it in the files of the job}."""
        marks = {path: f"{MARK}/{name}" for path, name in self._names.items()}
        if self.tool_directory:
            marks[self.tool_directory] = f"{MARK}/{TOOL_FOLDER}"
        marks[self.job_directory] = MARK
        return marks

    def _place(self, path, kind):
        name = self._names.get(path)
        if name is None:
            name, number = f"{INPUTS}/{posixpath.basename(path)}", 1
            while name in self._taken:
                number += 1
                name = f"{INPUTS}/{number}/{posixpath.basename(path)}"
            self._taken.add(name)
            self._names[path] = name
            kind[name] = path
        return posixpath.join(self.job_directory, name)


def marked(content, marks):
    """`content` (bytes) with a mark for each path.  The longest path that is there counts."""
    if not marks:
        return content
    known = {os.fsencode(path): mark.encode() for path, mark in marks.items()}
    pattern = b"|".join(re.escape(path) for path in sorted(known, key=len, reverse=True))
    return re.sub(b"(?:" + pattern + b")" + _GOES_ON, lambda match: known[match[0]], content)


def names_tool(content):
    """Whether marked content says anything of the tool's directory."""
    return re.search(re.escape(f"{MARK}/{TOOL_FOLDER}".encode()) + _GOES_ON, content) is not None


def goes_along(name):
    """Whether that entry of the job's directory goes to the site; of an earlier try's copies (`_working`) none does."""
    return name not in _STAYS and not (name.startswith("_") and not name.startswith("__"))


def is_tools_own(name):
    """Whether a file below the tool's directory, by its path there, may be needed by the tool."""
    return not _NEVER_TOOLS.intersection(name.split("/"))


def check_tool_files(directory, count, size):
    if count > MOST_TOOL_FILES or size > MOST_TOOL_BYTES:
        raise Refusal(
            f"stage: copy: the tool's directory {directory} has more than {MOST_TOOL_FILES} files or {MOST_TOOL_BYTES >> 20} MB; "
            "let the tool name those it needs by <required_files>"
        )


def check_job(facts):
    """`facts`: names of those below that hold for a job.  Raises Refusal where it cannot run away from Galaxy."""
    for fact, why in _CANNOT.items():
        if fact in facts:
            raise Refusal(f"stage: copy: {why}: send it to an environment that sees Galaxy's directories")


_CANNOT = {
    "galaxy_python": "this tool needs Galaxy's own Python, as uploads, data sources and Galaxy's own tools do",
    "interactive": "an interactive tool cannot be reached at the site",
    "cwl": "a CWL job needs Galaxy's own Python where it runs",
    "remote_evaluation": "tool_evaluation_strategy 'remote' needs Galaxy's own Python where the job runs",
    "split": "a job that Galaxy splits into tasks needs Galaxy's own Python where it runs",
}


def is_left(name, kept):
    """Whether that name of a result may be put into the job's directory.  `kept`: names of the files there that come back."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return False
    return parts[0] in ("outputs", "working") or name in kept or (len(parts) == 1 and name.startswith("__instrument_"))


def task_of(needs, places, script, kept, marked_files, collected, told, job_name):
    """The engine's task.  `script`: the name of the job's; `kept`: of what it leaves beside: exit code, standard output, standard
    error; `collected`: whether all of working/ is looked at; `told`: what the tool may say of its outputs there.
    `places.inputs` are files by now."""
    inputs = {**places.inputs, JOB: posixpath.join(places.job_directory, JOB)}
    command = ["/bin/sh", "-c", SCRIPT, "galaxy-job", script, *kept, "all" if collected else "", told, *marked_files]
    outputs = {RESULT: posixpath.join(places.job_directory, RESULT)}
    return {**needs, "command": command, "inputs": inputs, "outputs": outputs, "name": job_name}
