"""Shells complete our verbs and options, and man shows its page, from what `hpcbatch` itself says of them."""

import os
import re
import shlex
import subprocess

import pytest
from engine_at_home import PREFIX

PROGRAM = PREFIX / "bin/hpcbatch"
# A shell asks the program that is typed.
SURROUNDINGS = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": "/nonexistent"}


def told(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def in_bash(*words):
    """What bash would offer for the last of the words."""
    line = " ".join(map(shlex.quote, ["hpcbatch", *words]))
    script = (
        f"source <({shlex.quote(str(PROGRAM))} completion bash)\nCOMP_WORDS=({line}) COMP_CWORD={len(words)}\n"
        '_hpcbatch\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=SURROUNDINGS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def in_fish(*words):
    line = " ".join(["hpcbatch", *words])
    script = f"{shlex.quote(str(PROGRAM))} completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=SURROUNDINGS,
    )
    assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
    return [offer.split("\t")[0] for offer in done.stdout.splitlines()]


def in_zsh(*words):
    """zsh's own machinery needs a terminal: here it hands over what it would offer."""
    line = " ".join(map(shlex.quote, ["hpcbatch", *words]))
    script = (
        "compdef() { }; _files() { }; compadd() { shift; print -l -- $@ }\n"
        f"source <({shlex.quote(str(PROGRAM))} completion zsh)\nwords=({line}) CURRENT={len(words) + 1}\n_hpcbatch\n"
    )
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=False, env=SURROUNDINGS)
    assert (done.returncode, done.stderr) == (0, "")
    return [offer for offer in done.stdout.split() if offer.startswith(words[-1])]


@pytest.mark.parametrize("offers", [in_bash, in_fish, in_zsh])
def test_verbs_and_options_are_offered(offers):
    assert offers("su") == ["submit"]
    assert {"run", "submit", "list", "sites", "engine"} <= set(offers(""))
    assert offers("sites", "ad") == ["add"]
    assert {"--mem", "--cpus", "--time"} <= set(offers("submit", "--"))
    assert "--workspace" in offers("sites", "add", "--wo")
    assert "--mem" not in offers("list", "--")
    assert offers("completion", "z") == ["zsh"]
    assert not [
        word for word in offers("submit", "--each", "") if word.startswith("--")
    ], "a value, for which there are files"


@pytest.mark.parametrize("offers", [in_bash, in_zsh])
def test_nothing_of_ours_is_offered_to_the_command_of_a_task(offers):
    assert offers("submit", "--mem", "1G", "--", "tar", "--") == []


def test_another_shell_is_refused():
    done = subprocess.run([PROGRAM, "completion", "tcsh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "bash" in done.stderr and "fish" in done.stderr, done.stderr


def test_the_manual_page_has_each_verb_and_no_mistake(tmp_path):
    page = tmp_path / "hpcbatch.1"
    page.write_text(told("manual"))
    shown = subprocess.run(
        ["man", "--warnings", "-l", page],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-rHY=0"},
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    verbs = re.findall(r"^   (\S.*)$", shown.stdout, flags=re.M)
    assert {"run", "submit", "sites add", "engine stop", "plugin check"} <= set(verbs)
    assert "--keep-order" in shown.stdout
