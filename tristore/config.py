"""Settings: one nested model, the only reader of the environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import AliasChoices, BaseModel, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from tristore.errors import StartRefused

# In place of a Redis URL: the bus runs without a queue.
INLINE = "inline"


class EventsSettings(BaseModel):
    queue: str = Field("tristore_event_ingress", description="Name of the BullMQ queue.")
    require_schema: bool = Field(
        False, description="Dead-letter events whose type has no schema, instead of storing them."
    )
    relay_batch: int = Field(500, ge=1, description="Outbox rows sent in one job.")
    relay_in_flight: int = Field(
        20_000, ge=1, description="Outbox rows sent and not yet stored, at most."
    )
    lease_seconds: float = Field(
        30, gt=0, description="How long a sent outbox row may stay unstored before it is re-sent."
    )
    poll_seconds: float = Field(
        1, gt=0, description="Longest sleep of relay and readers when no wake-up arrives."
    )
    ingress_jobs: int = Field(
        300, ge=1, description="Jobs an ingress worker holds at once; they share commits."
    )
    lock_seconds: float = Field(
        10, gt=0, description="Lock of a job; a dead worker's jobs are taken over after it."
    )
    outbox_keep_days: int = Field(
        2, ge=1, description="Days that settled outbox rows are kept for the ledger."
    )
    log_keep_days: float | None = Field(
        None, gt=0, description="Days events are kept in the log; unset: for ever."
    )


class PublisherSettings(BaseModel):
    tries: int = Field(
        3, ge=1, description="Failed tries after which a publisher counts the bus as away."
    )
    backoff_seconds: float = Field(
        0.1, gt=0, description="Pause of a publisher after a first failed try; it doubles."
    )
    backoff_cap_seconds: float = Field(
        1, gt=0, description="Longest pause of a publisher between two tries."
    )
    jitter: float = Field(
        0.5, ge=0, le=1, description="Share of a publisher's pause that is left to chance."
    )
    buffer_events: int = Field(
        10_000, ge=1, description="Events a publisher keeps while they cannot be sent, at most."
    )
    buffer_bytes: int = Field(
        64 * 1024 * 1024, ge=1, description="Bytes of events a publisher keeps, at most."
    )
    buffer_path: Path | None = Field(
        None, description="File that keeps a publisher's unsent events; unset: memory only."
    )
    buffer_wait_seconds: float = Field(
        30, ge=0, description="How long `publish` waits for room in a full buffer before it fails."
    )
    job_events: int = Field(500, ge=1, le=1000, description="Events a publisher sends at once.")
    job_bytes: int = Field(
        768 * 1024, ge=1, le=1024 * 1024, description="Bytes a publisher sends at once, about."
    )
    close_seconds: float = Field(
        30, ge=0, description="How long a publisher that is closed tries to send what it holds."
    )


class HttpSettings(BaseModel):
    max_body_bytes: int = Field(
        1024 * 1024, ge=1, description="Largest request body of a route that sets no other limit."
    )
    max_header_bytes: int = Field(16 * 1024, ge=1024, description="Largest head of a request.")
    header_seconds: float = Field(
        8, gt=0, description="Time in which the head of a request must have arrived."
    )
    body_seconds: float = Field(8, gt=0, description="How often the pace of a body is looked at.")
    body_bytes_per_period: int = Field(
        1024, ge=1, description="Bytes a body must bring between two looks, or it is cut."
    )
    unread_seconds: float = Field(
        25, gt=0, description="How long a client may leave an answer unread before it is cut."
    )
    sockets_per_token: int = Field(
        20, ge=1, description="Live streams (WebSocket and SSE) one token may hold open."
    )
    slow_seconds: float = Field(
        10, gt=0, description="How long one write to a live stream may wait for its reader."
    )
    recheck_seconds: float = Field(
        20, gt=0, description="How often the tokens of open live streams are looked up again."
    )
    session_hours: float = Field(12, gt=0, description="How long a browser session lasts.")
    allowed_origins: str = Field(
        "",
        description="Origins besides our own whose pages may open sockets, comma separated.",
    )


class TimestoreSettings(BaseModel):
    root: str | None = Field(
        None,
        description="Folder of the Delta tables, or `s3://bucket/prefix`; unset: `tables` in the "
        "data folder.",
    )
    s3_endpoint: str | None = Field(
        None, description="S3 server of the tables, as a URL; unset: Amazon's in the region."
    )
    s3_region: str = Field("us-east-1", description="Region of the tables' bucket.")
    s3_credentials: str | None = Field(
        None,
        pattern=r"^env:[A-Z][A-Z0-9_]*$",
        description="`env:NAME`: the tables' keys are in NAME_ACCESS_KEY_ID and "
        "NAME_SECRET_ACCESS_KEY; unset: as the machine's role has them.",
    )
    trigger_seconds: float = Field(
        1, ge=0, description="Pause between the starts of two pipeline micro-batches."
    )
    max_events_per_trigger: int = Field(
        500_000, ge=1, description="Most events one micro-batch takes from the log."
    )
    filestore_sync: bool = Field(
        True, description="Make activity and growth tables of the filestore's events."
    )
    lifecycle_seconds: float = Field(
        5, gt=0, description="Pause between two rounds of upkeep: closing, compaction, exports."
    )
    compact_files: int = Field(
        40, ge=2, description="Small files in an open partition above which they are merged."
    )
    target_file_bytes: int = Field(
        128 * 1024 * 1024, ge=1024 * 1024, description="How large merged files become."
    )
    vacuum_hours: float = Field(
        1, gt=0, description="Hours between two removals of files that no table needs."
    )
    vacuum_keep_hours: int = Field(
        24, ge=1, description="Hours for which replaced files stay; longer than any query takes."
    )
    exports_root: str | None = Field(
        None,
        description="Folder (or `s3://…` where the tables are there) of exports; unset: `exports` "
        "beside the tables' folder, `_exports` in their bucket.",
    )
    growth_depth: int = Field(
        2, ge=0, le=8, description="How many levels of folders the growth table tells apart."
    )
    query_workers: int = Field(
        2, ge=1, le=4, description="Processes that answer queries; each takes one at a time."
    )
    query_seconds: float = Field(10, gt=0, description="How long one query may run.")
    query_memory_mb: int = Field(512, ge=64, description="Memory one query may use, in MiB.")
    query_rows: int = Field(10_000, ge=1, description="Most rows of an answer as JSON.")
    query_bulk_rows: int = Field(
        1_000_000, ge=1, description="Most rows of an answer as NDJSON, CSV, Arrow or Parquet."
    )
    query_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, description="Largest answer of a query; JSON: an eighth of it."
    )
    max_ingest_bytes: int = Field(
        2**30, ge=1, description="Largest body of one ingest into a dataset."
    )
    max_ingest_json_bytes: int = Field(
        64 * 2**20,
        ge=1,
        description="Largest JSON document of an ingest; NDJSON has no such limit.",
    )
    ingest_processes: int = Field(
        2, ge=1, le=64, description="Processes of an API that read the bodies of ingests."
    )
    ingest_seconds: float = Field(
        120, gt=0, description="How long reading the body of one ingest may take."
    )
    ingest_memory_mb: int = Field(
        4096, ge=512, description="Address space in MiB of a process that reads ingests."
    )
    max_ingest_rows_per_trigger: int = Field(
        1_000_000, ge=1, description="About how many staged rows one pipeline micro-batch takes."
    )
    staged_keep_seconds: int = Field(
        3600, ge=60, description="How long a staged file stays after its rows are in the table."
    )


class FilestoreSettings(BaseModel):
    allowed_roots: str = Field(
        "",
        description="Folders under which local mounts may lie, comma separated; unset: any but "
        "system folders, while the API listens on loopback only.",
    )
    allowed_endpoints: str = Field(
        "",
        description="Private or loopback S3 endpoints that mounts may use, comma separated.",
    )
    wait_seconds: float = Field(
        10, ge=0, description="How long a command waits for another that works on its path."
    )
    chunk_nodes: int = Field(
        500, ge=1, le=500, description="Nodes a recursive command or an import changes at once."
    )
    audit_seconds: int = Field(
        3600, ge=1, description="Time between two audits of a mount that sets none of its own."
    )
    staging_keep_seconds: int = Field(
        3600, ge=1, description="Age at which abandoned staging and trash files are swept."
    )
    s3_timeout_seconds: float = Field(
        10, gt=0, description="Longest wait for one answer of an S3 server."
    )
    max_upload_bytes: int | None = Field(
        None, ge=1, description="Largest file that may be uploaded; unset: as the mount has room."
    )


class MetastoreSettings(BaseModel):
    filestore_sync: bool = Field(
        True, description="Keep one record per file and directory of the filestore."
    )
    filestore_namespace: str = Field(
        "filestore",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$",
        description="Namespace of the records that follow the filestore.",
    )
    max_metadata_bytes: int = Field(
        256 * 1024, ge=1, le=4 * 1024 * 1024, description="Largest metadata of one record."
    )
    max_bulk_items: int = Field(
        5_000, ge=1, le=50_000, description="Most items one bulk call may have."
    )
    max_bulk_bytes: int = Field(
        16 * 1024 * 1024, ge=1, description="Largest body of one bulk call."
    )
    idempotency_keep_hours: float = Field(
        48, gt=0, description="How long the answer to a write with an Idempotency-Key is kept."
    )


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="TRISTORE_",
        env_nested_delimiter="__",
        env_file=".env",
        extra="ignore",
        populate_by_name=True,
    )

    database_url: str | None = Field(None, description="Postgres; unset: an embedded one.")
    redis_url: str | None = Field(
        None, description="Redis; unset: an embedded one; `inline`: no queue."
    )
    data_dir: Path = Field(Path(".tristore"), description="Where embedded servers keep their data.")
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(4400, ge=0, le=65535, description="Port the API listens on.")
    url: str | None = Field(None, description="Where client commands find the platform.")
    token: str | None = Field(None, description="Bearer token of client commands.")
    spark_master: str = Field("local[*]", description="Spark master of the pipeline.")
    spark_driver_memory: str = Field("1g", description="Heap of the Spark driver's JVM.")
    java_home: str | None = Field(
        None,
        validation_alias=AliasChoices("TRISTORE_JAVA_HOME", "JAVA_HOME"),
        description="Java 17+ for Spark; unset: the one on PATH, else the one shipped as a wheel.",
    )
    failpoints: str = Field(
        "",
        validation_alias=AliasChoices("TRISTORE_FAILPOINTS", "FAILPOINTS"),
        description="Faults to inject, `name:action:nth`, comma separated; for tests.",
    )
    http: HttpSettings = HttpSettings()
    events: EventsSettings = EventsSettings()
    publisher: PublisherSettings = PublisherSettings()
    timestore: TimestoreSettings = TimestoreSettings()
    filestore: FilestoreSettings = FilestoreSettings()
    metastore: MetastoreSettings = MetastoreSettings()

    def records_of_nodes(self) -> str | None:
        """The namespace in which every node of the filestore has its record, unless that is off."""
        return self.metastore.filestore_namespace if self.metastore.filestore_sync else None

    def log_datasets(self) -> list[str]:
        """The datasets that the event log feeds."""
        of_files = ["filestore_activity", "filestore_growth"]
        return ["events", *(of_files if self.timestore.filestore_sync else [])]

    def tables_root(self) -> str:
        return self.timestore.root or str(self.data_dir.absolute() / "tables")

    def tables_options(self) -> dict[str, str]:
        """How deltalake and obstore are told to reach the tables; nothing for a folder."""
        if not self.tables_root().startswith("s3://"):
            return {}
        given = self.timestore
        found = {"aws_region": given.s3_region, "aws_conditional_put": "etag"}
        if given.s3_endpoint:
            plain = str(given.s3_endpoint.startswith("http://")).lower()
            found |= {"aws_endpoint": given.s3_endpoint, "allow_http": plain}
        return found | (_key_options(given.s3_credentials) if given.s3_credentials else {})


def child_environment(overrides: Mapping[str, str]) -> dict[str, str]:
    """The environment a part is started with: ours, and what the platform decided."""
    return {**os.environ, **overrides}


def set_environment(name: str, value: str) -> None:
    """For libraries that can be told only so: Spark's launcher finds Java by JAVA_HOME."""
    os.environ[name] = value


def set_default_environment(name: str, value: str) -> None:
    """The same, unless whoever started us has decided otherwise."""
    os.environ.setdefault(name, value)


class S3Credentials(NamedTuple):
    access_key_id: str
    secret_access_key: str
    session_token: str | None

    def __repr__(self) -> str:
        return f"S3Credentials({self.access_key_id!r}, …)"


def _key_options(reference: str) -> dict[str, str]:
    keys = credentials(reference)
    if keys is None:
        name = reference.removeprefix("env:")
        raise StartRefused(
            f"the environment has no keys for the tables' bucket: set {name}_ACCESS_KEY_ID and "
            f"{name}_SECRET_ACCESS_KEY, or name others in TRISTORE_TIMESTORE__S3_CREDENTIALS"
        )
    given = {
        "aws_access_key_id": keys.access_key_id,
        "aws_secret_access_key": keys.secret_access_key,
        "aws_session_token": keys.session_token,
    }
    return {name: value for name, value in given.items() if value}


def credentials(reference: str) -> S3Credentials | None:
    """What `env:NAME` refers to; None when the environment does not hold it."""
    name = reference.removeprefix("env:")
    key = os.environ.get(f"{name}_ACCESS_KEY_ID")
    secret = os.environ.get(f"{name}_SECRET_ACCESS_KEY")
    if not key or not secret or name == reference:
        return None
    return S3Credentials(key, secret, os.environ.get(f"{name}_SESSION_TOKEN") or None)
