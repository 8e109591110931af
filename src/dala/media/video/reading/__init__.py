"""Sources of video: files, image sequences, raw frames."""
