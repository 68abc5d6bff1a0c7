"""The log as it grows: one tail, many readers."""
