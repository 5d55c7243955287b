"""The default engine: DuckDB in this process, on Parquet and CSV files, DuckDB files and frames in memory.

engine    runs a Work on a connection
dialect   DuckDB's SQL
sources   opens the sources of a catalog in one locked connection
files     Parquet, CSV and DuckDB files
frames    pandas, Polars and Arrow tables
views     the SQL of a table's view
verified  remembers which files were read without a fault
spill     folders for what does not fit into memory
"""
