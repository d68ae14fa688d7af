"""The public names of `counterpoint.mechanisms`."""

from counterpoint.mechanisms.composite import Own as Own
from counterpoint.mechanisms.composite_parts import Context as Context, Part as Part
from counterpoint.mechanisms.concurrent import Concurrent as Concurrent, Launch as Launch, Refused as Refused
from counterpoint.mechanisms.external import External as External
from counterpoint.mechanisms.guess_and_check import Guess as Guess, LinearGuess as LinearGuess
from counterpoint.mechanisms.multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
from counterpoint.mechanisms.postprocessing import Postprocessor as Postprocessor
from counterpoint.mechanisms.randomized_response import (
    Dice as Dice,
    InteractiveRandomizedResponse as InteractiveRandomizedResponse,
)
from counterpoint.mechanisms.interaction import Analyst as Analyst, View as View, interact as interact
from counterpoint.mechanisms.mechanism import Chosen as Chosen, State as State
from counterpoint.mechanisms.partition_selection import GaussianSelection as GaussianSelection
from counterpoint.mechanisms.threshold import Threshold as Threshold
from counterpoint.privacy.messages import Ask as Ask, Message as Message, ToChild as ToChild, Update as Update

__all__: list[str]
