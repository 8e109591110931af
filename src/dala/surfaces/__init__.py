"""Surfaces: pixels on a device, shown in windows, in notebooks, or off-screen."""
