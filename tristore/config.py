"""Settings: one nested model, the only reader of the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


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
    ingress_concurrency: int = Field(
        50, ge=1, description="Jobs an ingress worker holds at once; they share commits."
    )
    lock_seconds: float = Field(
        10, gt=0, description="Lock of a job; a dead worker's jobs are taken over after it."
    )


class TimestoreSettings(BaseModel):
    root: str | None = Field(
        None, description="Folder of the Delta tables; unset: `tables` in the data folder."
    )
    trigger_seconds: float = Field(
        1, ge=0, description="Pause between the starts of two pipeline micro-batches."
    )
    max_events_per_trigger: int = Field(
        100_000, ge=1, description="Most events one micro-batch takes from the log."
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
    events: EventsSettings = EventsSettings()
    timestore: TimestoreSettings = TimestoreSettings()

    def tables_root(self) -> str:
        return self.timestore.root or str(self.data_dir.absolute() / "tables")


def child_environment(overrides: Mapping[str, str]) -> dict[str, str]:
    """The environment a part is started with: ours, and what the platform decided."""
    return {**os.environ, **overrides}


def set_environment(name: str, value: str) -> None:
    """For libraries that can be told only so: Spark's launcher finds Java by JAVA_HOME."""
    os.environ[name] = value
