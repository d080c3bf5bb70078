"""heed over HTTP: OpenAI's calls, feedback, adapters, health, the web page and the dashboards."""
