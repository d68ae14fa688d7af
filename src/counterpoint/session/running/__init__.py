"""How a launch and an ask are run: the engine, its coins, what a mechanism is given."""
