"""Language models behind an OpenAI-compatible address: asked once for each thing, and paid once.

settings     a model: its address, limits and price
request      what a step asks, and what comes of it
chat_model   asks many requests at once; results in the order of the requests
batch        the same through the provider's batches, for half the price
attempt      how a request is asked and its reply judged, at once or in batches
caller       paces calls, keeps the budget, tries again
endpoint     one call over HTTP: its parameters, and what the endpoint can do
capabilities what it was found to support
streamed     the pieces of a streamed reply, put together
client       the HTTP client behind it
connections  its connections, for what is sent thousands of times
answers      reads what the server answers
failures     how a call can fail, by whose turn it is to mend it
reply        from the text of a reply to records, tolerantly
pacing       how many calls at once, and how fast
ledger       every request and reply, in SQLite
mark         whether replies there are as they were
prices       what a call costs
"""
