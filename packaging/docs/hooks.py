"""What mkdocs does not know: pages that lie outside docs/, and links that lead there."""

import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A file of the repository, and its page.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "snakemake/docs/further.md": "snakemake.md",
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def page_of(path: str) -> str | None:
    if path in OUTSIDE:
        return OUTSIDE[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and path.endswith(".md") else None


def with_links_of_the_site(text: str, source: str) -> str:
    """`source`: the file's path in the repository.  A link to what has no page becomes its text."""

    def relink(found: re.Match[str]) -> str:
        target = (ROOT / source).parent / found[2]
        page = page_of(str(target.resolve().relative_to(ROOT)))
        return f"[{found[1]}]({page}{found[3] or ''})" if page else found[1]

    return LINK.sub(relink, text)


def on_files(files: Files, config: Any) -> Files:
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    sources = {name: source for source, name in OUTSIDE.items()}
    return with_links_of_the_site(markdown, sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
