"""A hook of mkdocs. Links of pages to files outside of `docs/` become the names of these files."""

import logging
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)

log = logging.getLogger("mkdocs.hooks.outside")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page with such links as names: the site has no address for these files."""
    docs = Path(config.docs_dir).resolve()
    page_file = docs / page.file.src_uri

    def named(link: re.Match[str]) -> str:
        text, path = link.groups()
        target = (page_file.parent / path).resolve()
        if target.is_relative_to(docs):
            return link[0]
        if not target.exists():
            # A warning ends a strict build.
            log.warning("%s: there is no %s in the checkout", page.file.src_uri, path)
        name = target.relative_to(docs.parent).as_posix() + "/" * target.is_dir()
        is_its_name = name.strip("/").endswith(text.strip("`/"))
        return f"`{name}`" if is_its_name else f"{text} (`{name}`)"

    prose_and_code = FENCED.split(markdown)
    prose_and_code[::2] = [LINK.sub(named, prose) for prose in prose_and_code[::2]]
    return "".join(prose_and_code)
