# %% [markdown]
# # Streams
#
# Data that keeps arriving: visits to a web site, as they happen. A counter is charged once, and then answers at any
# time, for as long as you like.

# %%
import counterpoint as cp

visits = cp.Stream(
    unit="visitor",  # who is protected: a visitor
    per_unit=3,  # whose first three visits count
    fields={
        "page": cp.category(["home", "shop", "help"]),
        "seconds": cp.number(0, 600),
    },
)
live = cp.Session(visits, within=cp.zCDP(0.5))
shop = live.launch(cp.Counter(rho=0.2), of=cp.count(where="page = 'shop'"))
recent = live.launch(
    cp.Counter(rho=0.2, window=500), of=cp.count(where="page = 'shop'")
)

# %% [markdown]
# Both counters count visits to the shop: one since the beginning, one among the last 500 visits. Here is a day of
# visits. They are made up, and fewer people want to buy in the evening.


# %%
def visit(number):
    wants_to_buy = number % 100 < (50 if number < 3000 else 10)
    return {
        "visitor": f"v{number % 2000}",
        "page": "shop" if wants_to_buy else "home",
        "seconds": number % 60,
    }


so_far, lately = [], []
for start in range(0, 5000, 100):
    visits.feed(
        [visit(number) for number in range(start, start + 100)], name=f"from {start}"
    )
    so_far.append(shop.ask())
    lately.append(recent.ask())

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.plot(range(100, 5001, 100), so_far)
left.set(title="visits to the shop so far", xlabel="visits")
right.plot(range(100, 5001, 100), lately)
right.set(title="among the last 500", xlabel="visits")
plt.show()

# %% [markdown]
# A hundred numbers were shown, and the loss is what the two launches cost.

# %%
live.loss, live.loss.epsilon_at(1e-6)

# %% [markdown]
# How far off is a count? The error of a counter grows slowly with the length of the stream.

# %%
[
    (length, cp.Counter(rho=0.2).error(0.95, t=length))
    for length in (100, 10_000, 1_000_000)
]

# %% [markdown]
# ## Questions about what has arrived
#
# Every request of a table can be asked of a stream: it is about the records so far.

# %%
live.ask(cp.mean("seconds", where="page = 'shop'"), rho=0.02)

# %% [markdown]
# ## Who is protected
#
# A visitor who comes a thousand times still counts three times: later visits stay in their places as empty ones, so
# that nothing shows who came too often.

# %%
before = shop.ask()
visits.extend([{"visitor": "v1", "page": "shop", "seconds": 5}] * 1000)
shop.ask() - before

# %% [markdown]
# Next: [your own mechanism, verified](4_your_own_mechanism.ipynb).
