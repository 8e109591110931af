"""How built-in kernels are declared."""
