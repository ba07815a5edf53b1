"""Many captures: as tables in Parquet, questions in SQL, and what no single capture shows."""
