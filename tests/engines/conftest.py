"""One ``constructor`` fixture over all engines: every test that takes it runs on each of them.

An engine that is not installed skips its tests, or fails them where CALDIST_REQUIRE_ENGINES=1 says
that all must be there.
"""

import itertools
from pathlib import Path

import pytest

from engine_databases import postgres_programs, postgres_server
from engine_needs import REQUIRED, need

ENGINES = (
    "pandas",
    "pandas-nullable",
    "pandas-pyarrow",
    "polars",
    "polars-lazy",
    "pyarrow",
    "duckdb",
    "dask",
    "pyspark",
    "ibis",
    "ibis-postgres",
)
SLOW = {"dask", "pyspark", "ibis-postgres"}  # they start servers
# What Spark itself warns of.
THIRD_PARTY = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(THIRD_PARTY))


NUMBERS = itertools.count()  # of the tables in PostgreSQL


@pytest.fixture(scope="session")
def spark():
    need("pyspark.sql", "pandas", "pyarrow")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        if REQUIRED:
            raise
        pytest.skip(f"Spark does not start: {error}")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def dask_client():
    """Two worker processes, as in a cluster."""
    distributed = need("distributed", "dask.dataframe")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def postgres():
    """Yield an ibis connection to a PostgreSQL server that the tests start."""
    ibis = need("ibis", "ibis.backends.postgres", "pyarrow")
    programs = postgres_programs()
    if programs is None:
        message = "PostgreSQL's initdb is not installed"
        pytest.fail(message) if REQUIRED else pytest.skip(message)
    with postgres_server(programs) as address:
        connection = ibis.postgres.connect(**address)
        yield connection
        connection.disconnect()


def _pandas_types(engine):
    import pandas as pd
    import pyarrow as pa

    if engine == "pandas":
        return None
    if engine == "pandas-pyarrow":
        return pd.ArrowDtype
    return {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.string(): pd.StringDtype(),
    }.get


@pytest.fixture(
    params=[pytest.param(e, marks=pytest.mark.slow if e in SLOW else ()) for e in ENGINES]
)
def constructor(request):
    """Return a function from a pyarrow table, or the columns of one, to a table of the engine."""
    pa = need("pyarrow")
    engine = request.param

    def arrow(data):
        return data if isinstance(data, pa.Table) else pa.table(data)

    if engine == "pyarrow":
        return arrow
    if engine.startswith("pandas"):
        need("pandas")
        types = _pandas_types(engine)
        return lambda data: arrow(data).to_pandas(types_mapper=types)
    if engine == "polars":
        return lambda data: need("polars").from_arrow(arrow(data))
    if engine == "polars-lazy":
        return lambda data: need("polars").from_arrow(arrow(data)).lazy()
    if engine == "duckdb":
        connection = need("duckdb").connect()
        return lambda data: connection.from_arrow(arrow(data))
    if engine == "ibis":
        ibis = need("ibis", "ibis.backends.duckdb")
        return lambda data: ibis.memtable(arrow(data))
    if engine == "ibis-postgres":
        connection = request.getfixturevalue("postgres")
        return lambda data: connection.create_table(f"rows{next(NUMBERS)}", arrow(data), temp=True)
    if engine == "dask":
        request.getfixturevalue("dask_client")
        dd = need("dask.dataframe")
        types = _pandas_types("pandas-pyarrow")  # or dates and decimals would become text
        return lambda data: dd.from_pandas(arrow(data).to_pandas(types_mapper=types), npartitions=3)
    session = request.getfixturevalue("spark")
    return lambda data: session.createDataFrame(arrow(data))
