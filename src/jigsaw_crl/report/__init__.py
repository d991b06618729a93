"""Views of a result: the one-file page, and what terminals and notebooks show."""
