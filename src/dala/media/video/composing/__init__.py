"""Compositions of several videos."""
