"""The metastore: JSON records by namespace and key, with every version of them."""
