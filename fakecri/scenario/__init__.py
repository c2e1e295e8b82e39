"""Scenario documents: their shape, how they are read, and the plain objects that they become."""
