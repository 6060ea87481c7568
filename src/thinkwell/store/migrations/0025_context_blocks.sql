-- What agents remember beside their messages: one row for each version of a context block, and the
-- system prompts that were made of them.
CREATE TABLE context_blocks (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    label TEXT NOT NULL,
    key TEXT NOT NULL,
    version BIGINT NOT NULL,
    writer TEXT NOT NULL,
    source TEXT NOT NULL,
    principal TEXT,
    turn TEXT,
    tool_call_id TEXT,
    restored BIGINT,
    description TEXT,
    changed_at DOUBLE PRECISION NOT NULL,
    content TEXT,
    PRIMARY KEY (agent, session, label, key, version)
);
CREATE TABLE prompts (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    principal TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    shown TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    prompt TEXT,
    PRIMARY KEY (agent, session, principal)
);
