r"""Opening the data sets of a configuration, for a service or for a command.

>>> import tempfile
>>> from counterpoint.service.operating.config import read
>>> house = open_house(read("[streams.visits]\nbudget = { measure = 'PureDP', epsilon = 1 }", tempfile.mkdtemp()))
>>> house.names
('visits',)
>>> house.close()
"""

from functools import partial

from counterpoint.service.house import House
from counterpoint.service.operating.config import Settings


def open_house(settings: Settings) -> House:
    """The data sets, with their ledgers open."""
    house = House(settings.place, backups=settings.backup_folder)
    try:
        for name, data in settings.data_sets.items():
            house.register(name, partial(settings.bind, name), data.rule())
    except BaseException:
        house.close()
        raise
    return house
