"""The embedded servers and the supervisor that keeps a whole platform running on one machine."""
