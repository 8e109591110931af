"""Typed memory that users hold."""
