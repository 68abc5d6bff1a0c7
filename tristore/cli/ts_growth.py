"""`tristore ts growth` and `tristore ts churn`: how storage grew, and which folders change most."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tristore import errors
from tristore.cli import ts_chart
from tristore.cli.client import Client, read_answer
from tristore.cli.options import AsJson, DataDir, From, To, Token, Url
from tristore.timestore import ticks

_PATH = "/timestore/v1/storage"

Mount = Annotated[str | None, typer.Argument(help="One mount; all of them unless it is said.")]
Prefix = Annotated[str | None, typer.Option(help="A folder of the mount.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Svg = Annotated[Path | None, typer.Option("--svg", help="Write the chart to this file.")]


def growth(
    mount: Mount = None,
    prefix: Prefix = None,
    bucket: Annotated[str | None, typer.Option(help="One point per 1m, 1h, 1d, …")] = None,
    since: From = None,
    until: To = None,
    svg: Svg = None,
    as_csv: AsCsv = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show how storage grew, the last seven days unless it is said."""
    asked = {"mount": mount, "prefix": prefix, "bucket": bucket, "from": since, "to": until}
    client = Client.find(url, token, data_dir)
    if as_csv or svg is not None:
        _pass_on(client, "growth", asked, svg)
        return
    answer = client.get(f"{_PATH}/growth", **asked)
    if as_json:
        print(json.dumps(answer))
        return
    points = answer["points"]
    came, went = (sum(point[name] for point in points) for name in ("bytesIn", "bytesOut"))
    print(f"{_name(mount, prefix)}: {ticks.size(points[-1]['totalBytes'])} in the end, ", end="")
    print(f"{ticks.size(came)} came in, {ticks.size(went)} went out (times in UTC)")
    ts_chart.growth(Console(), points)
    _warn(answer)


def churn(
    mount: Mount = None,
    prefix: Prefix = None,
    depth: Annotated[int, typer.Option(min=1, max=32, help="Levels below the prefix.")] = 1,
    by: Annotated[str, typer.Option(help="changes or bytes.")] = "changes",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many folders.")] = 20,
    since: From = None,
    until: To = None,
    svg: Svg = None,
    as_csv: AsCsv = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the folders that change most, in the last seven days unless it is said."""
    if by not in ("changes", "bytes"):
        raise typer.BadParameter("--by is changes or bytes")
    asked = {"mount": mount, "prefix": prefix, "depth": depth, "by": by, "limit": limit}
    asked |= {"from": since, "to": until}
    client = Client.find(url, token, data_dir)
    if as_csv or svg is not None:
        _pass_on(client, "churn", asked, svg)
        return
    answer = client.get(f"{_PATH}/churn", **asked)
    if as_json:
        print(json.dumps(answer))
    elif answer["items"]:
        ts_chart.churn(Console(), answer["items"], by)
        _warn(answer)
    else:
        print(f"{_name(mount, prefix)}: nothing changed")


def _pass_on(client: Client, name: str, asked: dict[str, Any], svg: Path | None) -> None:
    """CSV to stdout, or a chart into a file, as the platform made it."""
    given = {key: value for key, value in asked.items() if value is not None}
    given["format"] = "csv" if svg is None else "svg"
    with client.http() as http:
        answer = http.get(f"{_PATH}/{name}", params=given)
    if not answer.is_success:
        read_answer(answer)
    if svg is None:
        print(answer.text, end="")
        return
    try:
        svg.write_bytes(answer.content)
    except OSError as error:
        raise errors.Terminal(f"{svg} cannot be written: {error.strerror}") from None
    print(f"wrote {svg}")


def _name(mount: str | None, prefix: str | None) -> str:
    return f"{mount or 'all mounts'}{f', {prefix}' if prefix else ''}"


def _warn(answer: dict[str, Any]) -> None:
    if answer["tailTruncated"]:
        print("the newest changes are left out; the pipeline is behind", file=sys.stderr)
