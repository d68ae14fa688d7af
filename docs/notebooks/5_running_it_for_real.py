# %% [markdown]
# # Running it for real
#
# A budget must survive its process. With a *ledger*, every charge and every answer is on disk before it is released.
# Here a process is killed in the middle of its work, and another one goes on.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import counterpoint as cp

folder = Path(tempfile.mkdtemp())
ledger = folder / "ledger.db"
key = b"32 secret bytes, from your vault"  # by which the ledger recognises the data

# %% [markdown]
# This program asks two questions, and is killed after the first: no cleaning up, no goodbye.

# %%
PROGRAM = f"""
import os, signal, counterpoint as cp
people = cp.datasets.people_table(key={key!r})
session = cp.Session(people, within=cp.PureDP(1), ledger={str(ledger)!r}, name="people")
adults = session.ask(cp.count(where="age >= 18"), epsilon=0.25, id="adults")
print("adults:", adults, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
session.ask(cp.mean("income"), epsilon=0.25, id="income")
"""
killed = subprocess.run(
    [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
)
print(killed.stdout, "and then: signal", -killed.returncode)

# %% [markdown]
# ## Another process goes on
#
# The same question under the same `id` gets the same answer, and is not charged again. A second draw of noise would be
# a second look at the data.

# %%
people = cp.datasets.people_table(key=key)
session = cp.open(ledger, "people", source=people)
session.ask(cp.count(where="age >= 18"), epsilon=0.25, id="adults"), session.loss

# %%
session.ask(cp.mean("income"), epsilon=0.25, id="income")

# %% [markdown]
# Another question under that id is a mistake, and is refused.

# %% raises
session.ask(cp.count(), epsilon=0.25, id="adults")

# %% [markdown]
# ## One data set, one budget
#
# A second session about the same rows would be a second budget. The ledger notices, under any name and any declaration.

# %%
session.close()

# %% raises
cp.Session(
    cp.datasets.people_table(key=key), within=cp.PureDP(1), ledger=ledger, name="again"
)

# %% [markdown]
# ## Check the books
#
# `verify` replays every charge through the rule, and follows the chain of hashes through every record.


# %%
def verify(database):
    command = [
        sys.executable,
        "-m",
        "counterpoint",
        "ledger",
        "verify",
        database,
        "--witness",
        f"{ledger}.witness",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print("exit status", done.returncode, done.stdout, done.stderr)


verify(ledger)

# %% [markdown]
# What if the database is changed behind its back? One bit of a copy is enough.

# %%
content = bytearray(ledger.read_bytes())
content[content.index(b"PureDP")] ^= 1
(folder / "changed.db").write_bytes(content)
verify(folder / "changed.db")

# %% [markdown]
# Keys, backups, PostgreSQL and what an attacker could still do are in the guide: [Running it for
# real](../guide/running.md).
