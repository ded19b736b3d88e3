"""Tools for agents that speak MCP, the Model Context Protocol (extra `mcp`).

mcp_tools.py       the list of tools: names, arguments, results, hints
tool_calls.py      the calls of the tools
index_status.py    what `status` tells about one index
write_calls.py     the calls of the tools that write
tool_results.py    results within a limit of tokens, cut at whole records
graph_records.py   parts of the graph
row_texts.py       the texts of rows
row_ids.py         ids of rows, such as letters/text-unit/12?version=3
mcp_server.py      the server of the protocol: tools, resources, prompts, completions
mcp_prompts.py     prompts that a user can choose
mcp_stdio.py       the server over standard input and output
mcp_endpoint.py    the server at /mcp
"""
