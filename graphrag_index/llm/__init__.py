"""Language and embedding models: OpenAI-compatible servers, and models on this machine.

request.py           requests, reply formats, outcomes: the types that steps use; the next attempt
                     after an invalid or slow reply
chat_model.py        a chat model: sends many requests concurrently, validates each reply; ends
                     calls for which nobody waits
ledger.py            the database of all requests, replies and batches, in SQLite
retries.py           retries of failed calls, within rate limits and a budget (limits.py)
client.py            the HTTP client of one model, streamed replies, checks of its server
protocol.py          request bodies without the parts that a server refuses (probe.py finds
                     them), parsing of responses
reply_parser.py      tolerant parsing of the text of a reply (broken_json.py)
batch.py             a chat model that sends its requests in the provider's batches
registry.py          the models of a run; deletion of unused requests from the ledger
prompts.py           prompts, and rows of tables as lines in a prompt; tokens.py counts tokens
embeddings.py        embedding models and rerankers on a server
local/               embedding models on this machine
"""
