"""Clips side by side and one after another."""
