"""What the tests compare with: a plain interpreter, and kernels made at random."""
