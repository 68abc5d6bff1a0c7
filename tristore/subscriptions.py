"""Every reaction to an event, in one table: who reads the log, and which types they react to."""

SUBSCRIPTIONS: dict[str, tuple[str, ...]] = {
    "live": ("*",),  # WebSocket readers, by their own filters
    "pipeline": ("*",),  # the archive of everything: the Delta table `events`
}
