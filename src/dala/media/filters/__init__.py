"""Filters as functions and chains on frames."""
