-- Durable calls of named methods, outside the agent's slot.
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    due_at DOUBLE PRECISION NOT NULL,
    idempotency_key TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    base_delay DOUBLE PRECISION NOT NULL,
    max_delay DOUBLE PRECISION NOT NULL,
    deaths BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT,
    boot BIGINT,
    held TEXT,
    cancel_requested TEXT,
    error TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    started_at DOUBLE PRECISION,
    finished_at DOUBLE PRECISION,
    payload TEXT,
    stash TEXT,
    UNIQUE (agent, id)
);
CREATE UNIQUE INDEX jobs_by_key ON jobs (agent, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_wake ON jobs (due_at, seq, agent) WHERE status = 'waiting' AND held IS NULL;
CREATE INDEX jobs_due ON jobs (agent, due_at, seq) WHERE status = 'waiting' AND held IS NULL;
CREATE INDEX jobs_running ON jobs (seq) WHERE status = 'running';
CREATE INDEX jobs_held ON jobs (seq) WHERE held IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (finished_at) WHERE finished_at IS NOT NULL;
