"""Pictures that are shown: in windows, in notebooks, or nowhere but in memory."""
