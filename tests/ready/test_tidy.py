"""What clang-tidy finds in sources by themselves it finds in batches too, and what it found clean it knows again."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
CLEAN = "int twice(int number) { return 2 * number; }\n"


@pytest.fixture
def tree(tmp_path):
    """A checkout of sources that are compiled alike; `tidy(words, {name: text})` is what tidy says of them."""

    class Tree:
        folder = tmp_path / "house"

        def tidy(self, *words, **sources):
            entries = []
            for name, text in sources.items():
                path = self.folder / name.replace("__", "/")
                path = path.with_name(path.name + ".cpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                command = f"/usr/bin/ccache g++ -std=c++20 -I{self.folder}/core -o {path.name}.o -c {path}"
                entries.append({"directory": str(self.folder / "build"), "command": command, "file": str(path)})
            (self.folder / "build/compile_commands.json").write_text(json.dumps(entries))
            done = subprocess.run(
                [self.folder / "tests/ready/tidy", *words, self.folder / "build", *(one["file"] for one in entries)],
                env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == (1 if done.stdout else 0), done
            return done.stdout, int(done.stderr.split(" sources, ")[1].split()[0])

    for name in ("tests/ready/tidy", ".clang-tidy", "tests/.clang-tidy"):
        (Tree.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE.parents[1] / name, Tree.folder / name)
    (Tree.folder / "build").mkdir()
    (Tree.folder / "core").mkdir()
    (Tree.folder / "core/said.hpp").write_text("#pragma once\nint said();\n")
    return Tree()


def many(prefix, count):
    return {f"{prefix}{at}": CLEAN.replace("twice", f"twice_{prefix[-1]}_{at}") for at in range(count)}


@pytest.mark.parametrize("count", [2, 20])
def test_a_bad_name_is_found_where_it_stands(tree, count):
    bad = "int BadName() { return 1; }\n"
    said, looked = tree.tidy(**many("core__a", count), core__bad=bad, tests__bad=bad.replace("Name", "Test"))
    assert looked == count + 2
    assert "core/bad.cpp:1:5" in said and "tests/bad.cpp:1:5" in said and "core/a1.cpp:" not in said, said


def test_what_was_clean_is_known_until_it_or_what_it_includes_changes(tree):
    sources = many("core__a", 20) | {"core__says": '#include "said.hpp"\nint said() { return 1; }\n'}
    assert tree.tidy(**sources) == ("", 21)
    assert tree.tidy(**sources) == ("", 0)
    (tree.folder / "core/said.hpp").write_text("#pragma once\nint said();\nint said_again();\n")
    assert tree.tidy(**sources) == ("", 1)
    assert tree.tidy(**sources | {"core__a3": "int changed() { return 1; }\n"}) == ("", 1)


def test_one_that_leans_on_its_neighbours_includes_is_found_where_each_is_looked_at(tree):
    sources = many("core__b", 20) | {
        "core__a": '#include "said.hpp"\n',
        "core__c": "int two() { return 2 * said(); }\n",
    }
    tree.tidy(**sources)
    said, looked = tree.tidy("--each", **sources)
    assert looked == 22 and "core/c.cpp:1:" in said, said
    assert tree.tidy("--each", **sources)[1] == 1


def test_sources_that_do_not_go_together_are_looked_at_by_themselves(tree):
    sources = many("core__a", 20) | {"core__b": "namespace { int one() { return 1; } }\nint two() { return one(); }\n"}
    sources |= {"core__c": sources["core__b"].replace("two", "three")}
    assert tree.tidy(**sources) == ("", 22)


def test_the_configuration_of_a_folder_holds_in_a_batch(tree):
    branches = "".join(f"  if (number == {at}) {{ if (number > 0) number += {at + 1}; }}\n" for at in range(20))
    long = f"int long_one(int number) {{\n{branches}  return number;\n}}\n"
    said, _ = tree.tidy(**many("core__a", 20), core__long=long, tests__long=long, **many("tests__a", 20))
    assert "core/long.cpp:1:5" in said and "tests/long.cpp:1:5" not in said, said
