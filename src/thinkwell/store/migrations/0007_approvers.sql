-- Whom a tool names to decide about a call that waits: the tool itself may be gone by then.
CREATE TABLE approvers (
    agent TEXT NOT NULL,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    ids TEXT,
    PRIMARY KEY (agent, message_id, tool_call_id)
);
