"""Language and embedding models behind an OpenAI-compatible address.

request.py           requests, formats of replies, outcomes: the types that steps use
chat_model.py        many requests at once, each reply validated and kept in the ledger
request_chain.py     cache key, attempts, validation and follow-ups of one request
client.py            the HTTP client: limits, retries, budget (pacing.py, prices.py, call_errors.py)
request_body.py      bodies of requests, as the server supports them
http_replies.py      parsing of responses and streams (http_session.py, their transport)
parsing/             tolerant parsing of the text of a reply
batch.py             the chat model over a provider's batches (batch_queue.py, batch_endpoint.py)
ledger.py            every request and reply, in SQLite (batch_ledger.py, the batches)
registry.py          the models of a run
prompts.py           prompts; rendered_rows.py, tables in them
embeddings.py        embedding models behind an address
local_embeddings.py  the embedded embedding model (model_files.py, its download)
"""
