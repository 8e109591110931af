"""What a kernel is: typed values, what it reads and where, what it writes."""
