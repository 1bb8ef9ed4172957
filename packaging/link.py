#!/usr/bin/env python3
"""Links what packages hold: CMake's launcher of the linker for the preset `package`.

    link.py WORK g++ WORDS...

The words are those of an ordinary link.  Of each library only the archive is taken, from WORK/libraries or beside the shared
one, and of glibc nothing newer than 2.28: its names come from zig, which knows those of every version of glibc.  What is
static already (the pilot) is linked as it is.  WORK/linked/PROGRAM lists the archives, for the licences that go with them.
"""

import os
import re
import subprocess
import sys

OLDEST_GLIBC = "2.28"
OF_GLIBC = {"c", "m", "dl", "rt", "pthread", "resolv", "util"}
# What an archive itself needs; a shared library would have said so.
ALSO = {
    "avformat": ["avcodec", "avutil", "z"],
    "avcodec": ["avutil", "z"],
    "spdlog": ["fmt"],
    "ssh": ["crypto", "z"],
    "xgboost": ["dmlc"],
}


class Cannot(Exception):
    pass


def compiler_file(compiler, name):
    path = subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not os.path.isabs(path):
        raise Cannot(f"{compiler} has no {name}")
    return path


def archive(name, folders):
    for folder in folders:
        path = os.path.join(folder, f"lib{name}.a")
        if os.path.exists(path):
            return path
    raise Cannot(f"no archive lib{name}.a in {', '.join(folders)}: add the library to packaging/libraries")


def linked(words, work, compiler):
    """The words with each library as its archive, and those that the archives need, each after who needs it."""
    system = os.path.dirname(os.path.realpath(compiler_file(compiler, "libz.so")))
    folders = [f"{work}/libraries/lib", system, os.path.dirname(compiler_file(compiler, "libgcc.a"))]
    done, taken = [], []
    made = words[words.index("-o") + 1]
    for word in words:
        # What the compiler is told; and the names that another library gives out, where it is one by itself.
        if re.match(r"-[fmOgD]", word) or ("--version-script" in word and not word.endswith(".exports")):
            continue
        # Our fakes have the names of libraries.
        found = word != made and re.fullmatch(r"-l(.+)|(?:.*/)?lib([^/]+?)\.(?:so[\d.]*|a)", word)
        name = found and (found[1] or found[2])
        if not name:
            done.append(word)
        elif name not in OF_GLIBC:
            is_ours = word.endswith(".a") and not os.path.isabs(word)
            done.append(word if is_ours else archive(name, folders))
            taken.append(name)
    for name in taken:
        for also in ALSO.get(name, []):
            done.append(archive(also, folders))
            taken.append(also)
    return done


def note(work, words):
    """Which archives are in it, but for our own."""
    os.makedirs(f"{work}/linked", exist_ok=True)
    program = os.path.basename(words[words.index("-o") + 1])
    with open(f"{work}/linked/{program}", "w") as listed:
        listed.writelines(f"{word}\n" for word in words if word.endswith(".a") and os.path.isabs(word))


def main():
    work, compiler, *words = sys.argv[1:]
    try:
        runtime = [compiler_file(compiler, name) for name in ("libstdc++.a", "libgcc_eh.a", "libgcc.a")]
        if "-static" in words:
            note(work, [*words, *runtime, compiler_file(compiler, "libc.a")])
            os.execvp(compiler, [compiler, *words])
        words = linked(words, work, compiler)
    except Cannot as error:
        sys.exit(f"packaging/link.py: {error}")
    note(work, [*words, *runtime])
    pie = [] if "-shared" in words else ["-pie"]
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"x86_64-linux-gnu.{OLDEST_GLIBC}"]
    os.execv(
        sys.executable,
        [
            *zig,
            *pie,
            "-Wl,-z,nocopyreloc",
            "-Wl,--gc-sections",
            "-s",
            *words,
            f"{work}/old_glibc.o",
            *runtime,
            "-lm",
            "-lpthread",
            "-ldl",
        ],
    )


if __name__ == "__main__":
    main()
