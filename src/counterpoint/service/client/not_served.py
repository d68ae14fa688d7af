"""What a local session does and a served one does not: one table, which the guide shows.

>>> not_served("Session", "rehearse")
Traceback (most recent call last):
...
counterpoint.errors.NotAllowed: a served session has no rehearse: rehearse on made-up rows of the same declaration, ...
"""

from typing import NoReturn

from counterpoint.errors import NotAllowed

NOT_SERVED = {
    "Session.acting_as": "a key belongs to one principal; connect with another key to act as another",
    "Session.close": "close the connection; a session stays open for everyone who has a grant in it",
    "Session.data_closed": "ask or launch: while the data are closed, both say so with DataFailed",
    "Session.page_of_children": "read handles and given, which fetch every page",
    "Session.rehearse": "rehearse on made-up rows of the same declaration, in a local session",
}
"""What is `NotAllowed` over a connection, and what to do instead."""
ARGUMENTS = {
    "launch(a mechanism or a composite of your own, or Concurrent)": "a service launches what is on its list alone",
    "ask(sql(text))": "say session.sql(text)",
    "delegate(rule), grant(rule)": "a service delegates budgets; rules are made by the custodian, in the ledger",
    "grant(...) in a delegated session": "a service grants out of a data set's whole budget",
}
"""What a served call does not take, and what to do instead."""


def not_served(kind: str, name: str) -> NoReturn:
    """Refuse what the table lists; anything else is no attribute, as with every object."""
    instead = NOT_SERVED.get(f"{kind}.{name}")
    if instead is None:
        raise AttributeError(f"a served {kind.lower()} has no attribute {name!r}")
    raise NotAllowed(f"a served {kind.lower()} has no {name}: {instead}")
