-- What somebody was asked: a call, bound to its arguments and to the schema its model was shown.
CREATE TABLE approvals (
    agent TEXT NOT NULL,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    turn TEXT,
    tool_name TEXT NOT NULL,
    input TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    asker TEXT,
    note TEXT,
    asked_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION,
    outcome TEXT CHECK (outcome IN ('allowed', 'denied', 'expired', 'withdrawn')),
    decided_at DOUBLE PRECISION,
    PRIMARY KEY (agent, message_id, tool_call_id)
);
CREATE INDEX open_approvals ON approvals (agent, asked_at) WHERE outcome IS NULL;

-- Calls that are allowed without asking again.
CREATE TABLE approval_rules (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    tool_name TEXT NOT NULL,
    principal TEXT,
    arguments TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    made_by TEXT,
    by_client BIGINT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    revoked_at DOUBLE PRECISION
);
CREATE INDEX rules_of_tool ON approval_rules (agent, tool_name) WHERE revoked_at IS NULL;

-- A decision says which question it answers, for which arguments and schema, and which rule made it.
ALTER TABLE decisions ADD COLUMN approval_id TEXT;
ALTER TABLE decisions ADD COLUMN input_hash TEXT;
ALTER TABLE decisions ADD COLUMN schema_hash TEXT;
ALTER TABLE decisions ADD COLUMN rule TEXT;
ALTER TABLE decisions ADD COLUMN expired BIGINT NOT NULL DEFAULT 0;
CREATE INDEX decisions_by_rule ON decisions (agent, message_id, tool_call_id) WHERE rule IS NOT NULL;
