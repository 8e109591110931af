"""Compute on any device."""
