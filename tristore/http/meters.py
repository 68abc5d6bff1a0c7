"""Every metric there is, by the part of the platform it tells of."""

from tristore.metrics import Counter, Family, Gauge, Histogram


class OfServer:
    def __init__(self) -> None:
        call = ("method", "route")
        self.requests = Counter(
            "tristore_http_requests_total", "Requests answered.", (*call, "status")
        )
        self.seconds = Histogram(
            "tristore_http_request_seconds", "Time until an answer began.", call
        )
        self.up = Gauge("tristore_up", "1 if the server or worker is well.", ("part",))


class OfLog:
    def __init__(self) -> None:
        self.readers = Gauge("tristore_live_readers", "Live streams open in this process.")
        self.tail = Gauge("tristore_tail_sequence", "How far this process has read the log.")
        self.tail_lag = Gauge("tristore_tail_lag_events", "Events the tail has still to read.")
        self.last = Gauge("tristore_log_last_sequence", "Sequence number of the newest event.")
        self.stored = Counter(
            "tristore_events_stored_total",
            "Events stored since this process was first asked.",
            ("source",),
        )


class OfOutbox:
    def __init__(self) -> None:
        self.backlog = Gauge(
            "tristore_outbox_events", "Events in the outbox that are not stored yet.", ("state",)
        )
        self.waiting = Gauge(
            "tristore_outbox_waiting_events",
            "Events of a source that wait to be sent.",
            ("source",),
        )
        self.failed = Gauge(
            "tristore_outbox_failed_sends",
            "Sends that failed, of events that still wait.",
            ("source",),
        )
        self.oldest = Gauge(
            "tristore_outbox_oldest_seconds", "Age of the oldest event that waits to be sent."
        )


class OfDelivery:
    def __init__(self) -> None:
        self.depth = Gauge("tristore_queue_jobs", "Jobs that wait in the queue or are worked on.")
        self.dead = Gauge(
            "tristore_dead_letters", "Dead letters nobody has settled.", ("reason", "source")
        )
        self.lag = Gauge(
            "tristore_consumer_lag_events", "Events a consumer has still to read.", ("consumer",)
        )


class OfSync:
    def __init__(self) -> None:
        self.lag = Gauge(
            "tristore_sync_lag_seconds", "Age of the oldest event the filestore sync has to read."
        )
        self.refused = Gauge(
            "tristore_sync_refused", "Nodes whose record breaks the rules of its namespace."
        )
        self.paused = Gauge("tristore_sync_paused", "1 while the filestore sync is paused.")


class OfFilestore:
    def __init__(self) -> None:
        self.drifts = Gauge(
            "tristore_filestore_drifts", "Paths seen to differ from their nodes, not yet settled."
        )
        self.degraded = Gauge(
            "tristore_filestore_degraded_mounts", "Mounts that are not watched whole."
        )
        self.jobs = Gauge(
            "tristore_filestore_jobs", "Imports and audits of the last 30 days.", ("kind", "state")
        )
        self.scanned = Gauge(
            "tristore_filestore_scanned_files", "What they have looked at so far.", ("kind",)
        )


class OfTimestore:
    def __init__(self) -> None:
        self.staged = Gauge(
            "tristore_ingest_waiting_batches",
            "Staged batches that are not in their table yet.",
            ("dataset",),
        )


class Meters:
    def __init__(self) -> None:
        self.server = OfServer()
        self.log = OfLog()
        self.outbox = OfOutbox()
        self.delivery = OfDelivery()
        self.sync = OfSync()
        self.filestore = OfFilestore()
        self.timestore = OfTimestore()

    def families(self) -> list[Family]:
        return [family for part in vars(self).values() for family in vars(part).values()]
