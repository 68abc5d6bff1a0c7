"""`tristore ts`: datasets of the timestore; one file per sub-command."""

import typer

from tristore.cli import ts_datasets, ts_export, ts_growth, ts_ingest, ts_query

app = typer.Typer(
    help="Datasets: datasets, ingest, query, sql, growth, churn, export.", no_args_is_help=True
)
app.command("query")(ts_query.query)
app.command("sql")(ts_query.sql)
app.command("growth")(ts_growth.growth)
app.command("churn")(ts_growth.churn)
app.command("export")(ts_export.export)
app.add_typer(ts_datasets.app, name="datasets")
app.command("ingest")(ts_ingest.ingest)
