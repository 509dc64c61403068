"""A batch job of ten rows for tests: spark_probe.py ok|fail MILLISECONDS_PER_ROW."""

import sys
import time

from pyspark.sql import SparkSession

how, millis = sys.argv[1], int(sys.argv[2])


def work(row):
    time.sleep(millis / 1000)
    return row


spark = SparkSession.builder.getOrCreate()
count = spark.sparkContext.parallelize(range(10), 2).map(work).count()
if how == "fail":
    raise ValueError("ledger out of balance: 0.01")
print(f"::output rows={count}")
spark.stop()
