"""How the property tests run: without a clock, and the same every time in CI, so that red means the change is."""

import os

from hypothesis import Phase, settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
# for planted bugs, of which it is enough to know that they are found: no example is made smaller
settings.register_profile("planted", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile("ci" if os.environ.get("CI") else "here")
