"""Folders and files that are written whole or not at all, and private folders for the time of a run."""
