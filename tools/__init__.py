"""Housekeeping of the repository; the course itself does not need it."""
