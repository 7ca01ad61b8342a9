"""The web edition: the executed notebooks as a static site (``make site``)."""
