-- Who decided about tool calls.

-- name: record_decision
-- An answer from outside was applied.
INSERT INTO decisions (agent, turn, message_id, tool_call_id, tool_name, action, approved, reason,
                       principal, by_client, decided_at)
VALUES (:agent, :turn, :message_id, :tool_call_id, :tool_name, :action, :approved, :reason,
        :principal, :by_client, :decided_at);

-- name: decisions_of
-- All decisions about calls of one agent.
SELECT * FROM decisions WHERE agent = :agent ORDER BY seq;

-- name: drop_decisions
-- A clear erases who decided about what as well.
DELETE FROM decisions WHERE agent = :agent;
