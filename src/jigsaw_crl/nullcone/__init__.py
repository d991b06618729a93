"""The null-cone method: what a client really reveals, and how to read it from data."""
