"""Tables and files of any size: read them, summarize them as joints.

``summarize`` takes pandas, polars, pyarrow, duckdb, dask, pyspark and ibis tables, and files. An
engine never computes a measure; a measure never sees a table.
"""

from caldist.engines.files import open_files
from caldist.engines.summaries import (
    summarize,
    summarize_one_vs_rest,
    summarize_top_label,
)

__all__ = ["open_files", "summarize", "summarize_one_vs_rest", "summarize_top_label"]
