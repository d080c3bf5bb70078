"""heed over HTTP: OpenAI's chat calls, feedback, what was learned, health, and the web page."""
