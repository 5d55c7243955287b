"""The default engine: DuckDB in this process, on Parquet and CSV files, DuckDB files and frames in memory."""
