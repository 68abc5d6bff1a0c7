"""Named queries from the `.sql` files beside the code that uses them.

A file holds blocks that start with `-- name: the_name`; the lines of comment after it say
what the query is for.
"""

import re
from importlib.resources import files
from types import SimpleNamespace

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(package: str, file: str) -> SimpleNamespace:
    text = files(package).joinpath(file).read_text("utf-8")
    parts = _NAME.split(text)
    named = zip(parts[1::2], parts[2::2], strict=True)
    return SimpleNamespace(**{name: sql.strip() for name, sql in named})
