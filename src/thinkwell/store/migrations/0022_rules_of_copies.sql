-- An agent may be a copy of another one in the same database: the id of a rule is unique in its agent.
ALTER TABLE approval_rules RENAME TO former_rules;
CREATE TABLE approval_rules (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    principal TEXT,
    arguments TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    made_by TEXT,
    by_client BIGINT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    revoked_at DOUBLE PRECISION,
    UNIQUE (agent, id)
);
INSERT INTO approval_rules (seq, agent, id, tool_name, principal, arguments, schema_hash, made_by,
                            by_client, made_at, revoked_at)
SELECT seq, agent, id, tool_name, principal, arguments, schema_hash, made_by, by_client, made_at,
       revoked_at
FROM former_rules;
DROP TABLE former_rules;
CREATE INDEX rules_of_tool ON approval_rules (agent, tool_name) WHERE revoked_at IS NULL;
