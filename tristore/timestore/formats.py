"""The formats rows may be sent in, by the names HTTP and files have for them."""

from typing import Literal

from tristore.errors import UnsupportedFormat

Format = Literal["json", "ndjson", "csv", "parquet", "arrow", "arrowfile"]

MEDIA: dict[str, Format] = {
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.arrow.file": "arrowfile",
}
# What a file is sent as; Feather files are Arrow's file format.
EXTENSIONS = {
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".arrow": "application/vnd.apache.arrow.file",
    ".feather": "application/vnd.apache.arrow.file",
}


def format_of(content_type: str | None) -> Format:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind not in MEDIA:
        raise UnsupportedFormat(
            "set Content-Type to what the body is: application/json (rows), application/x-ndjson, "
            "text/csv, application/vnd.apache.parquet or application/vnd.apache.arrow.stream"
        )
    return MEDIA[kind]
