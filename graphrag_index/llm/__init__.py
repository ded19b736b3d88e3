"""Language and embedding models behind an OpenAI-compatible address.

request.py           requests, formats of replies, outcomes: the types that steps use
chat_model.py        many requests at once, each reply validated and kept in the ledger
ledger.py            every request and reply, in SQLite
retries.py           calls that are retried, within their limits (limits.py)
client.py            the HTTP client of one model
protocol.py          bodies of requests, as the server supports them; parsing of responses
reply_parser.py      tolerant parsing of the text of a reply (broken_json.py, schema_fit.py)
batch.py             the chat model over a provider's batches
                     (batch_queue.py, batch_endpoint.py, batch_ledger.py)
registry.py          the models of a run; purging of the ledger
prompts.py           prompts, and rows of tables in them
embeddings.py        embedding models behind an address
local_embeddings.py  the embedded embedding model, and its download
"""
