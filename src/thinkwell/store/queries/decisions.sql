-- Who decided about tool calls.

-- name: record_decision
-- An answer from outside was applied.
INSERT INTO decisions (agent, turn, message_id, tool_call_id, tool_name, action, approved, reason,
                       principal, by_client, decided_at)
VALUES (:agent, :turn, :message_id, :tool_call_id, :tool_name, :action, :approved, :reason,
        :principal, :by_client, :decided_at);

-- name: drop_decisions
-- A clear erases who decided about what as well.
DELETE FROM decisions WHERE agent = :agent;

-- name: name_approvers
-- A call waits, and its tool names who may decide; no ids: its own function decides.
INSERT INTO approvers (agent, message_id, tool_call_id, ids)
VALUES (:agent, :message_id, :tool_call_id, :ids)
ON CONFLICT (agent, message_id, tool_call_id) DO UPDATE SET ids = excluded.ids;

-- name: named_approvers
-- Whom the tool of a waiting call names.
SELECT ids FROM approvers
WHERE agent = :agent AND message_id = :message_id AND tool_call_id = :tool_call_id;

-- name: drop_approvers
-- A clear erases who could have decided.
DELETE FROM approvers WHERE agent = :agent;
