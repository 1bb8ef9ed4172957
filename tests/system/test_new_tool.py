"""`tools new`: what it writes is a tool that works, and explains every key that there is."""

import re

from engine_at_home import ROOT


def test_it_is_a_tool_that_works(home):
    folder = home.directory / "my tools"
    written = home.ok("tools", "new", "first-lines.v2", "--dir", folder, cwd=home.directory)
    file = folder / "first-lines.v2.yaml"
    assert written.splitlines()[0] == str(file) and "tools check first-lines.v2" in written
    assert file.stat().st_mode & 0o777 == 0o644 and "@" not in file.read_text()
    home.configure(f"tool_path: ['{folder}']\n")
    home.ok("tools", "check", "first-lines.v2")
    (home.directory / "-a text").write_text("".join(f"{i}\n" for i in range(100)))
    words = ["--tool", "first-lines.v2", "--input", f"text={home.directory}/-a text"]
    home.ok("run", *words, "--output", f"start={home.directory}/out", "--param", "lines=3")
    assert (home.directory / "out").read_text() == "0\n1\n2\n"
    (home.directory / "-a text").write_text("")
    refused = home.verb("run", *words, "--output", f"start={home.directory}/none")
    assert refused.code == 1 and "the text has no lines" in refused.err, refused
    assert not (home.directory / "none").exists()


def test_every_key_in_a_comment_may_be_there(home):
    """With all of them taken out of their comments it is a tool still."""
    home.ok("tools", "new", "all_keys", cwd=home.directory)
    file = home.directory / "all_keys.yaml"
    text = re.sub(r"^( *)# ([a-z_]+: [\[{/0-9a-z].*)$", r"\1\2", file.read_text(), flags=re.M)
    assert (
        len(re.findall(r"^ *[a-z_]+:", text, flags=re.M))
        > len(re.findall(r"^ *[a-z_]+:", file.read_text(), flags=re.M)) + 8
    )
    file.write_text(text)
    home.configure(f"tool_path: [{home.directory}]\n")
    home.ok("tools", "check", "all_keys")
    known = set(re.findall(r'map\.(?:find|get)\("([a-z_]+)"\)', (ROOT / "core/tools/tool_file.cpp").read_text()))
    known |= set(re.findall(r'map\.find\("([a-z_]+)"\)', (ROOT / "core/tools/tool_resources.cpp").read_text()))
    known |= {"parameters", "inputs", "outputs"}
    assert [key for key in sorted(known) if not re.search(rf"\b{key}:", text)] == []


def test_nothing_is_written_over(home):
    (home.directory / "mine.yaml").write_text("dear")
    for words, said in [
        (("mine",), "File exists"),
        (("../mine",), "is no name of a tool"),
        (("",), "is no name of a tool"),
        (("other", "--dir", "/proc/x"), "cannot write"),
    ]:
        refused = home.verb("tools", "new", *words, cwd=home.directory)
        assert refused.code == 2 and said in refused.err and len(refused.err.splitlines()) == 1, refused
    assert (home.directory / "mine.yaml").read_text() == "dear"
    told = home.json("tools", "new", "third", cwd=home.directory)
    assert told == [{"file": f"{home.directory}/third.yaml"}]


def test_a_new_tool_makes_its_own_folder_alone(home, tmp_path):
    refused = home.verb("tools", "new", "mine", "--dir", tmp_path / "no/such")
    assert refused.code == 2 and "No such file or directory" in refused.err and not (tmp_path / "no").exists(), refused
    home.ok("tools", "new", "mine", "--dir", tmp_path / "one")
