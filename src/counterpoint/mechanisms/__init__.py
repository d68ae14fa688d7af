"""The randomized state machines, and what is made of them: concurrent composition, postprocessing, interaction."""
