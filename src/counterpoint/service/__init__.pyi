"""The public names of `counterpoint.service`."""

from counterpoint.service.client.connect import ItemsArrived as ItemsArrived, LossChanged as LossChanged

__all__: list[str]
