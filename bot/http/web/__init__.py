"""The chat page: its template and its static files."""
