"""Work that runs asynchronously: commands, streams, the scheduler."""
