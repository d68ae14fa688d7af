"""The HTTP service, its dashboard, and its client.

`cp.connect` opens a connection to a service. A follower of a session receives `LossChanged` and `ItemsArrived`.

>>> import counterpoint as cp
>>> cp.service.ItemsArrived(3)
ItemsArrived(items=3)
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)
