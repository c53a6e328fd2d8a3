"""A page of layers for a browser: one file, which asks for no other."""

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Callable, Optional, Sequence

from elmo_scratch.explore.page_data import page_data
from elmo_scratch.explore.tokens import ExportedTokens

FOLDER = Path(__file__).parent


def layer_page(
    tokens: ExportedTokens,
    *,
    k: int,
    labels: Optional[Sequence[str]] = None,
    done: Callable[[int], object] = lambda steps: None,
) -> bytes:
    """
    Makes the page, in UTF-8. The same file gives the same bytes.

    The browser is told to run no other script than the page's own and to load nothing. Sentences
    and labels reach the page as text: neither can be taken for a tag.

    # Parameters

    tokens : `ExportedTokens`
        The tokens, at most `page_data.MAX_TOKENS`.
    k : `int`
        How many neighbours a token gets in each layer.
    labels : `Sequence[str]`, optional (default = none)
        A label for each sentence, by which maps are coloured.
    done : `Callable[[int], object]`, optional (default = nothing)
        Is told 1 after each of `page_data.num_steps` steps.

    # Raises

    ConfigurationError
        If there are too many tokens, or the file is damaged.
    """
    # Only pages need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    style, script = (
        (FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    page = environment.get_template("page.html").render(
        tokens=tokens,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        data=page_data(tokens, k, labels, done),
    )
    # A file's name may hold bytes that are no text.
    return page.encode("utf-8", "replace")


def _digest(text: str) -> str:
    """By which a content security policy knows a script or a style."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
