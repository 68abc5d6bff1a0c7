"""The filestore: a tracked tree of files over local disk or S3 whose every change is journaled."""
