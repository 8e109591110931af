"""How work is cut up before it is run."""
