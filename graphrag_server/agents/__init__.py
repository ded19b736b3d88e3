"""Tools for agents that speak MCP, the Model Context Protocol (extra `mcp`).

mcp_tools.py       the list of tools: names, arguments, results, hints
tool_calls.py      the calls of the tools
tool_results.py    ids of rows; results within a limit of tokens, cut at whole records
index_records.py   texts of rows, parts of the graph, and the status of an index
mcp_server.py      the server of the protocol: tools and resources
mcp_stdio.py       the server over standard input and output
mcp_endpoint.py    the server at /mcp
"""
