"""Tools for agents that speak MCP, the Model Context Protocol (extra `mcp`)."""
