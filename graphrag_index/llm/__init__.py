"""Language and embedding models: OpenAI-compatible servers, and models on this machine.

request.py           requests, reply formats, outcomes: the types that steps use; the next attempt
                     after an invalid or slow reply
chat_model.py        a chat model: sends many requests concurrently, validates each reply
                     (cached_model.py: replies from the ledger; cancellation.py: the end of
                     calls for which nobody waits)
ledger.py            the database of all requests and replies, in SQLite
retries.py           retries of failed calls, within rate limits and a budget (limits.py)
client.py            the HTTP client of one model, and streamed replies (server_check.py checks
                     its server)
protocol.py          request bodies without the parts that a server refuses (probe.py finds
                     them), parsing of responses
reply_parser.py      tolerant parsing of the text of a reply (broken_json.py, schema_fit.py)
batch.py             a chat model that sends its requests in the provider's batches
                     (batch_queue.py, batch_endpoint.py, batch_ledger.py)
registry.py          the models of a run; deletion of unused requests from the ledger
prompts.py           prompts, and rows of tables as lines in a prompt
embeddings.py        embedding models on a server
rerank.py            rerankers on a server
local/               embedding models on this machine
"""
