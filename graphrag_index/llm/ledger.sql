-- The tables of the ledger.

-- One row for each request.
CREATE TABLE IF NOT EXISTS requests (
    key TEXT PRIMARY KEY,        -- hash of model, parameters, messages and schema
    step TEXT NOT NULL,
    unit TEXT NOT NULL,          -- a label for the user: a document and its passage, ...
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reply BLOB,                  -- the validated reply
    reason TEXT NOT NULL DEFAULT '', -- why the request is quarantined
    raw TEXT NOT NULL DEFAULT ''     -- the last invalid reply
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_state ON requests (step, state);
-- One row for each request. Each run updates these short rows instead of the rows of `requests`,
-- which contain long replies.
CREATE TABLE IF NOT EXISTS uses (
    key TEXT PRIMARY KEY,        -- key of the request
    step TEXT NOT NULL,
    version INTEGER NOT NULL     -- the newest version of the index that uses the request
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uses_by_step ON uses (step, version);
-- One row for each call of a server.
CREATE TABLE IF NOT EXISTS calls (
    key TEXT NOT NULL,
    step TEXT NOT NULL,
    model TEXT NOT NULL,
    version INTEGER NOT NULL,    -- the version of the index for which the call was made
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL                    -- in dollars; null if the price is not known
);
CREATE TABLE IF NOT EXISTS metadata (
    name TEXT PRIMARY KEY,       -- for example "endpoint capabilities: …"
    value TEXT NOT NULL
) WITHOUT ROWID;
-- The provider's batches, also the collected batches.
CREATE TABLE IF NOT EXISTS batches (
    key TEXT PRIMARY KEY,        -- name of the file with the requests, without its ending
    step TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    file_id TEXT NOT NULL,       -- id of the file at the provider, empty until it is known
    batch_id TEXT NOT NULL,      -- id of the batch at the provider, empty until it is known
    n_requests INTEGER NOT NULL,
    n_tokens INTEGER NOT NULL,   -- estimated tokens of all prompts and replies
    max_cost REAL NOT NULL,      -- in dollars
    capabilities TEXT NOT NULL,  -- server capabilities when the requests were written
    submitted REAL NOT NULL,     -- seconds since 1970
    status TEXT NOT NULL,        -- status that the provider reports
    n_done INTEGER NOT NULL      -- processed requests, including failed requests
) WITHOUT ROWID;
-- The requests of batches that are not collected yet.
CREATE TABLE IF NOT EXISTS batch_requests (
    key TEXT PRIMARY KEY,
    batch TEXT NOT NULL,         -- key of the batch
    attempt TEXT NOT NULL        -- the text of `Attempt.encode`
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_batch ON batch_requests (batch);
-- The last result of each batch request that has no valid reply yet.
CREATE TABLE IF NOT EXISTS batch_replies (
    key TEXT PRIMARY KEY,
    attempt TEXT NOT NULL,       -- the text of `Attempt.encode`
    reply TEXT,                  -- null if the result is an error
    finish TEXT NOT NULL,        -- reason why the reply ends: stop, length, ...
    status INTEGER NOT NULL,     -- HTTP status: 200 if there is a reply to validate
    message TEXT NOT NULL,       -- error message of the provider
    failures INTEGER NOT NULL,   -- number of temporary failures so far
    capabilities TEXT NOT NULL   -- server capabilities when the request was written
) WITHOUT ROWID;
