"""Picture files: formats, metadata, color profiles, decoding and encoding."""
