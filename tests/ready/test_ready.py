"""What `./dev ready` finds in pages that have fallen behind the code."""

import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.pure

HERE = pathlib.Path(__file__).parent
GOOD = {
    "README.md": "# Us\n\n## First steps\n\nSee [the pages](docs/configuration.md#a-site).\n\n    hpcbatch submit --cpus 2 -- sort --key 1\n",
    "docs/configuration.md": "## A site\n\n| `name` | its name |\n\n`core/cli/parse.cpp` parses; [up](../README.md#first-steps).\n",
    "docs/parts.md": "`cli/parse` parses.\n",
    "core/cli/parse.cpp": 'verb("submit"); option("--cpus");\n',
    "core/documents/configuration.cpp": 'find("name")\n',
}


@pytest.fixture
def check(tmp_path):
    """Runs check_docs over GOOD with these files changed; returns what it says."""

    def check(changed):
        for name, text in (GOOD | changed).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        done = subprocess.run([HERE / "check_docs", tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == (1 if done.stderr else 0), done
        return done.stderr.splitlines()

    return check


def test_good_pages_are_good(check):
    assert check({}) == []


def test_the_pages_of_this_checkout_are_good():
    done = subprocess.run([HERE / "check_docs"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "name, added, said",
    [
        ("README.md", "[x](docs/none.md)", "README.md:8: the link leads to docs/none.md, which is not there"),
        ("README.md", "[x](#nowhere)", "README.md:8: README.md has no heading for #nowhere"),
        (
            "README.md",
            "[x](docs/configuration.md#a-box)",
            "README.md:8: docs/configuration.md has no heading for #a-box",
        ),
        ("README.md", "`core/cli/none.cpp`", "README.md:8: core/cli/none.cpp is not there"),
        ("README.md", "`hpcbatch sumbit`", "README.md:8: hpcbatch has no verb sumbit"),
        ("README.md", "    hpcbatch submit --cpu 3", "README.md:8: hpcbatch submit has no option --cpu"),
        ("docs/parts.md", "`cli/none`", "docs/parts.md:2: no room and no source is called cli/none"),
        (
            "docs/configuration.md",
            "| `mane` | no key |",
            "docs/configuration.md:1: `mane` is no key of the configuration",
        ),
        (
            "core/documents/configuration.cpp",
            'find("name") get("shapes")',
            "docs/configuration.md:1: `shapes` is not documented",
        ),
    ],
)
def test_what_is_not_so_any_more_is_found(check, name, added, said):
    assert check({name: GOOD[name] + added + "\n"}) == [said]
