"""Time-partitioned datasets: Delta tables and the SQL that reads them."""
