"""Probabilities of orders, given evidence."""
