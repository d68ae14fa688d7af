"""The tasks of the gallery with Counterpoint: `python docs/gallery/with_counterpoint.py` runs them, where
counterpoint[datasets,plot] is installed. Each cell may use what earlier cells have named.
"""

# %% 0. Setting up
import counterpoint as cp

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
delay = cp.number(-60, 600)
rows = cp.datasets.flights()
flights = cp.Table(
    rows,
    unit=cp.each_row,
    columns={
        "carrier": cp.category(CARRIERS),
        "month": cp.category(range(1, 13)),
        "date": cp.date("2013-01-01", "2013-12-31"),
        "dep_delay": delay,
        "arr_delay": delay,
    },
)
session = cp.Session(flights, within=cp.ApproxDP(5, 1e-6))

# %% 1. A first count
print(repr(session.ask(cp.count(), epsilon=0.1)))

# %% 2. Counts by carrier, as a frame with errors
counts = session.ask(cp.count(by="carrier"), epsilon=0.1)
print(counts.to_pandas())

# %% 3. Mean and median delay by carrier
# The error of a mean is in minutes. That of a median is in ranks: how many flights the true median may be away.
print(session.ask(cp.mean("arr_delay", by="carrier"), epsilon=0.5))
print(session.ask(cp.median("arr_delay", by="carrier"), epsilon=0.5))

# %% 4. The top five destinations, whose names are not known
found = session.ask(cp.keys("dest"), loss=cp.ApproxDP(0.25, 1e-7))
print(
    session.ask(cp.count(by="dest", keys=found), epsilon=0.25)
    .to_pandas()
    .nlargest(5, "value")
)

# %% 5. A sparse vector over days
# The sparse vector pays for the three days that it reports, and nothing for the days before them.
from datetime import date, timedelta

late = session.launch(cp.SparseVector(epsilon=0.5, threshold=250, hits=3))
day = date(2013, 1, 1)
while not late.halted:
    day += timedelta(days=1)
    if late.ask(cp.count(where=f"date = '{day}' AND dep_delay > 60")):
        print(day)

# %% 6. A replayed stream with a plot
# The year is replayed month by month. The counter is charged once and answers after each month.
import matplotlib.pyplot as plt
import polars as pl

departures = cp.Stream(fields={"dep_delay": delay})
live = cp.Session(departures, within=cp.PureDP(1))
hours_late = live.launch(cp.Counter(epsilon=1), of=cp.count(where="dep_delay > 60"))
shown = []
for month in range(1, 13):
    departures.feed(
        pl.read_parquet(rows).filter(pl.col("month") == month), name=f"month {month}"
    )
    shown.append(hours_late.ask())
plt.step(range(1, 13), shown)

# %% 7. Months explored one by one, each with its own questions
# All months together cost as much as one. The questions about a month depend on its own answers and on those of others.
months = session.partition("month", within=cp.PureDP(0.5))
for month in range(1, 13):
    if months[month].ask(cp.count(where="arr_delay > 60"), epsilon=0.25) > 2500:
        print(month, repr(months[month].ask(cp.mean("arr_delay"), epsilon=0.25)))

# %% 8. Sharing what remains
# The colleague's session has a budget of its own, which is charged here at once.
colleague = session.delegate(cp.PureDP(session.remaining.epsilon / 2))
print(colleague.remaining, session.remaining)

# %% 9. Within 50 of the truth in 95 % of cases
print(repr(session.ask(cp.count(where="dep_time IS NULL"), error=50)))

# %% 10. A mechanism of your own
# It watches a series of values and releases the first one that looks large. What it costs follows from its parts.
from counterpoint.encoding import Value
from counterpoint.numbers.parameters import Positive

EACH = cp.relations.every_step()


class Nothing(cp.mechanisms.Own, Value, frozen=True):
    pass


class FirstPeak(cp.Composite, Value, frozen=True):
    epsilon: Positive
    relation = EACH

    @property
    def structure(self):
        half = cp.PureDP(self.epsilon / 2)
        return cp.mechanisms.Part("watch", half, EACH), cp.mechanisms.Part(
            "release", half, EACH
        )

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask) and message.private is not None

    def begin(self, context):
        context.launch("watch", cp.SparseVector(self.epsilon / 2, threshold=250))
        context.launch("release", cp.Laplace(self.epsilon / 2))
        return Nothing()

    def react(self, context, own, message):
        if not context.ask("watch", message.private):
            return own, None
        return None, context.ask("release", message.private)


peak = session.launch(FirstPeak(epsilon=0.5))
print(
    [
        peak.ask(cp.count(where=f"date = '2013-03-{day:02}' AND dep_delay > 60"))
        for day in range(1, 9)
    ],
    session.loss,
)

# %% 11. Verifying it, with a planted bug
# The verifier plays every adversary that sends these messages, on every outcome of the noise. The bug: a value is
# released twice as large, with the same noise.


class Doubled(FirstPeak, frozen=True):
    def react(self, context, own, message):
        if not context.ask("watch", message.private):
            return own, None
        return None, context.ask("release", message.private * 2)


pairs = [
    (cp.mechanisms.Ask(private=a), cp.mechanisms.Ask(private=b))
    for a, b in [(249, 250), (250, 249)]
]
for mechanism in (FirstPeak(5), Doubled(5)):
    print(mechanism, cp.verify.exact(mechanism, messages=pairs, rounds=2).judge())

# %% 12. Durable: killed and reopened
# The program kills itself after the answer. Run again, it opens the same session and gives the same
# answer for no further charge.
import subprocess
import sys
import tempfile

PROGRAM = """
import os, signal, counterpoint as cp
key = b"32 secret bytes, from your vault"
flights = cp.datasets.flights_table(unit=cp.each_row, key=key)
session = cp.Session(flights, within=cp.PureDP(1), ledger="ledger.db", name="flights")
print(session.ask(cp.count(), epsilon=0.5, id="how many flights?"), flush=True)
print(session.loss, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
with tempfile.TemporaryDirectory() as folder:
    for _ in range(2):
        print(
            subprocess.run(
                [sys.executable, "-c", PROGRAM],
                cwd=folder,
                capture_output=True,
                text=True,
            ).stdout
        )

# %% 13. Displays in a notebook
# A notebook shows the counts as a table with errors, and this picture of them as a drawing; a terminal shows it so:
print(counts.plot())

# %% 14. A thousand Gaussian steps
steps = cp.Session(flights, within=cp.GaussianDP(1))
handles = [steps.launch(cp.Gaussian(mu=0.01)) for _ in range(1000)]
print(steps.loss.epsilon_at(1e-6))
