"""The client of a service: `cp.connect` gives a connection, and its sessions have the calls of a local session.

A follower of a session (`session.events()`) receives `LossChanged` and `ItemsArrived`. Nothing of the server is
imported here: what both ends send is in `counterpoint.wire`.

>>> import counterpoint as cp
>>> cp.client.ItemsArrived(3)
ItemsArrived(items=3)
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)
