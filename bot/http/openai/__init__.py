"""OpenAI's wire format: chat completions, completions, models, tools, scoring."""
