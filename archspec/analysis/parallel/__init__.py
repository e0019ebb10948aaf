"""The parts of a model that one device of several has."""
