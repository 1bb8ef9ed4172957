"""What the docs tell people to type: its blocks, and the Python programs among them."""

import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).parents[2]


def blocks_of(text):
    """Paragraphs that are indented by four blanks, as scripts."""
    return [
        re.sub("^    ", "", block, flags=re.M)
        for block in re.findall(r"(?:^(?:    .*)?\n)*(?:^    .*\n)", text, flags=re.M)
        if block.strip()
    ]


def python_programs():
    """{name: text}: those that are written by `cat > NAME.py`, and blocks that are Python."""
    found = {}
    pages = {"README": ROOT / "README.md", "wheel": ROOT / "python/README.md"}
    for stem, page in (pages | {page.stem: page for page in sorted((ROOT / "docs").glob("*.md"))}).items():
        for number, block in enumerate(blocks_of(page.read_text())):
            for name, text in re.findall(r"^cat > (\w+)\.py <<'END'\n(.*?)^END$", block, flags=re.M | re.S):
                found[f"{stem}_{name}"] = text
            if re.match(r"\s*(import|from) \w", block):
                found[f"{stem}_{number}"] = textwrap.dedent(block)
    return found
