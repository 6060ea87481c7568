-- Who decided about tool calls.

-- name: record_decision
-- An answer from outside was applied.
INSERT INTO decisions (agent, turn, message_id, tool_call_id, tool_name, action, approved, reason,
                       principal, by_client, decided_at, approval_id, input_hash, schema_hash, rule,
                       expired)
VALUES (:agent, :turn, :message_id, :tool_call_id, :tool_name, :action, :approved, :reason,
        :principal, :by_client, :decided_at, :approval_id, :input_hash, :schema_hash, :rule,
        :expired);

-- name: decided_by_rule
-- Whether a rule has allowed a call before: an earlier attempt may have died after that.
SELECT 1 AS found FROM decisions
WHERE agent = :agent AND message_id = :message_id AND tool_call_id = :tool_call_id
  AND rule = :rule LIMIT 1;

-- name: decisions_of_agent
-- Who decided what, the newest first.
SELECT * FROM decisions WHERE agent = :agent ORDER BY seq DESC LIMIT :limit;

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

-- name: drop_old_decisions
-- Decisions past their age, the oldest first, a bounded piece at a time.
DELETE FROM decisions WHERE decided_at < :before AND seq IN (
    SELECT seq FROM decisions ORDER BY seq LIMIT :limit);
