"""The public names of `counterpoint.client`."""

from counterpoint.client.connect import ItemsArrived as ItemsArrived, LossChanged as LossChanged

__all__: list[str]
