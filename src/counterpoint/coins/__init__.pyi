"""The public names of `counterpoint.coins`."""

from counterpoint.coins.coins import Coins as Coins
from counterpoint.coins.enumerated import EnumeratedCoins as EnumeratedCoins, Law as Law
from counterpoint.coins.secure import SecureCoins as SecureCoins, SeededCoins as SeededCoins
from counterpoint.coins.tape import RecordingCoins as RecordingCoins, ReplayedCoins as ReplayedCoins

__all__: list[str]
