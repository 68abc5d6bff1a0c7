"""The story `make demo` tells, on a real platform in a temporary folder."""
