"""Utilities that every layer may use; nothing here knows of kernels or devices."""
