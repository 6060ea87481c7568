-- Who approved or answered which tool call.
CREATE TABLE decisions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    turn TEXT,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('answer', 'approve')),
    approved BIGINT,
    reason TEXT,
    principal TEXT,
    by_client BIGINT NOT NULL,
    decided_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX decisions_by_agent ON decisions (agent, seq);
