"""Tools for agents that speak MCP, the Model Context Protocol (extra `mcp`).

mcp_tools.py     the list of tools: names, arguments, results, hints
tool_calls.py    the calls of the tools, and the texts of rows
tool_results.py  ids of rows; results within a limit of tokens, cut at whole records
mcp_server.py    the server of the protocol: tools and resources, over stdio and at /mcp
"""
