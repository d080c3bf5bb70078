"""`heed mcp`: a running heed as tools for other programs' models, by the Model Context Protocol."""
