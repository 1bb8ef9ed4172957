"""What a direct job finds when it begins, in its second attempt as in its first.

Snakemake makes that ground once, before the job is sent.  Where a pilot has died under the job, its next attempt removes what the
one before has left, and makes the folders and the shadow again.
"""

import os
import shlex

# A longer one is read from a file: a command has a longest length.
_LONGEST_LINE = 4000


def ground_of(job):
    """Lines of a POSIX shell that make the ground of a job that Snakemake has prepared, from what an attempt has left."""
    lines = []
    if job.shadow_dir:
        lines.append("find . -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +")
        lines += _shadow(os.path.abspath(job.shadow_dir))
    # In a shadow too: its links may lead to folders of the working directory.
    made = [str(path).rstrip("/") for path in (*job.output, *job.log)]
    if made:
        lines.append("rm -rf -- " + _words(made))
    # What measures a job writes into the working folder, whatever the shadow.
    folders = {os.path.dirname(path) for path in made} - {""}
    if folders:
        lines.append("mkdir -p -- " + _words(sorted(folders)))
    return lines


def _words(paths):
    # A name that begins with a dash stands behind "--".
    return " ".join(shlex.quote(path) for path in paths)


def _shadow(folder):
    """What is in the shadow: folders, links, and (of "copy-minimal") copies of inputs."""
    lines, folders = [], []
    for path, names, files in os.walk(folder):
        inside = os.path.relpath(path, folder)
        for name in sorted(names + files):
            whole, here = os.path.join(path, name), os.path.normpath(os.path.join(inside, name))
            if os.path.islink(whole):
                lines.append(f"ln -s -- {shlex.quote(os.readlink(whole))} {shlex.quote(here)}")
            elif os.path.isdir(whole):
                folders.append(here)
            else:
                lines.append(f"cp -- {shlex.quote(os.path.abspath(here))} {shlex.quote(here)}")
    return (["mkdir -p -- " + _words(folders)] if folders else []) + lines


def on_its_ground(argv, lines, keep, is_posix):
    """The command `argv` of a shell (`[program, "-c", text]`), whose attempts from the second on begin with `lines`.

    `keep` gives the path of a file with a text; `is_posix`: the program reads `lines` itself, else sh does and starts it.
    """
    if not lines:
        return argv
    makes = " && ".join(lines)
    if len(makes) > _LONGEST_LINE:
        makes = ". " + shlex.quote(keep("\n".join(line + " &&" for line in lines) + "\n:\n"))
    begin = f'[ "${{HPCBATCH_ATTEMPT:-1}}" -le 1 ] || {{ {makes}; }} || exit 1; '
    if is_posix:
        return [*argv[:-1], begin + argv[-1]]
    return ["sh", "-c", begin + 'exec "$@"', "sh", *argv]
