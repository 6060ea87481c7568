-- Questions about tool calls, and rules that answer them.

-- name: ask_approval
-- Somebody is about to be asked. Asking again, after a crash or with other arguments, replaces it.
INSERT INTO approvals (agent, message_id, tool_call_id, approval_id, turn, tool_name, input,
                       input_hash, schema_hash, asker, note, asked_at, expires_at)
VALUES (:agent, :message_id, :tool_call_id, :approval_id, :turn, :tool_name, :input,
        :input_hash, :schema_hash, :asker, :note, :asked_at, :expires_at)
ON CONFLICT (agent, message_id, tool_call_id) DO UPDATE SET
    approval_id = excluded.approval_id, turn = excluded.turn, tool_name = excluded.tool_name,
    input = excluded.input, input_hash = excluded.input_hash, schema_hash = excluded.schema_hash,
    asker = excluded.asker, note = excluded.note, asked_at = excluded.asked_at,
    expires_at = excluded.expires_at, outcome = NULL, decided_at = NULL;

-- name: approval_of_call
-- What was asked about one call.
SELECT a.*, n.ids AS approvers FROM approvals a
LEFT JOIN approvers n ON n.agent = a.agent AND n.message_id = a.message_id
                     AND n.tool_call_id = a.tool_call_id
WHERE a.agent = :agent AND a.message_id = :message_id AND a.tool_call_id = :tool_call_id;

-- name: approvals_of_message
-- What was asked about the calls of one message.
SELECT a.*, n.ids AS approvers FROM approvals a
LEFT JOIN approvers n ON n.agent = a.agent AND n.message_id = a.message_id
                     AND n.tool_call_id = a.tool_call_id
WHERE a.agent = :agent AND a.message_id = :message_id;

-- name: any_open_approval
-- Whether something is left that nobody has decided.
SELECT 1 AS found FROM approvals WHERE agent = :agent AND outcome IS NULL LIMIT 1;

-- name: open_approval
-- The question with this id, if nobody has decided it.
SELECT a.*, n.ids AS approvers FROM approvals a
LEFT JOIN approvers n ON n.agent = a.agent AND n.message_id = a.message_id
                     AND n.tool_call_id = a.tool_call_id
WHERE a.agent = :agent AND a.approval_id = :id AND a.outcome IS NULL;

-- name: close_approval
-- A question is decided.
UPDATE approvals SET outcome = :outcome, decided_at = :now
WHERE agent = :agent AND message_id = :message_id AND tool_call_id = :tool_call_id
  AND outcome IS NULL;

-- name: drop_waiting_job
-- A job that nobody needs any more, before it has begun.
DELETE FROM jobs WHERE agent = :agent AND idempotency_key = :key AND status = 'waiting';

-- name: drop_approvals
-- A clear erases what was asked.
DELETE FROM approvals WHERE agent = :agent;

-- name: drop_approvers_of_old
-- Who could have decided about the questions that `drop_old_approvals` drops next.
DELETE FROM approvers WHERE (agent, message_id, tool_call_id) IN (
    SELECT agent, message_id, tool_call_id FROM approvals WHERE decided_at < :before
    ORDER BY decided_at, agent, message_id, tool_call_id LIMIT :limit);

-- name: drop_old_approvals
-- Questions that were decided, or withdrawn, past their age, a bounded piece at a time.
DELETE FROM approvals WHERE (agent, message_id, tool_call_id) IN (
    SELECT agent, message_id, tool_call_id FROM approvals WHERE decided_at < :before
    ORDER BY decided_at, agent, message_id, tool_call_id LIMIT :limit);

-- name: drop_old_rules
-- Rules that were revoked, past their age, a bounded piece at a time.
DELETE FROM approval_rules WHERE seq IN (
    SELECT seq FROM approval_rules WHERE revoked_at < :before ORDER BY seq LIMIT :limit);

-- name: drop_expiries
-- After a clear nothing is left that could expire.
DELETE FROM jobs WHERE agent = :agent AND name = 'approvals.expire' AND status = 'waiting';

-- name: add_rule
-- Calls that fit this are allowed from now on.
INSERT INTO approval_rules (agent, id, tool_name, principal, arguments, schema_hash, made_by,
                            by_client, made_at)
VALUES (:agent, :id, :tool_name, :principal, :arguments, :schema_hash, :made_by, :by_client,
        :made_at);

-- name: renew_rule
-- Its maker says the same again, having signed in anew.
UPDATE approval_rules SET made_by = :made_by WHERE agent = :agent AND id = :id;

-- name: rules_of_tool
-- The rules about one tool that hold.
SELECT * FROM approval_rules
WHERE agent = :agent AND tool_name = :tool_name AND revoked_at IS NULL ORDER BY seq;

-- name: rules_of_agent
-- The rules of an agent that hold, the oldest first, a page at a time.
SELECT * FROM approval_rules
WHERE agent = :agent AND revoked_at IS NULL AND seq > :after ORDER BY seq LIMIT :limit;

-- name: rule_by_id
-- One rule, revoked or not.
SELECT * FROM approval_rules WHERE agent = :agent AND id = :id;

-- name: revoke_rule
-- It holds no longer.
UPDATE approval_rules SET revoked_at = :now
WHERE agent = :agent AND id = :id AND revoked_at IS NULL;

-- name: list_approvals
-- What all agents, or one, have asked, the newest first; `all` shows decided ones too.
SELECT a.*, n.ids AS approvers FROM approvals a
LEFT JOIN approvers n ON n.agent = a.agent AND n.message_id = a.message_id
                     AND n.tool_call_id = a.tool_call_id
WHERE a.agent = COALESCE(:agent, a.agent) AND (a.outcome IS NULL OR :all)
ORDER BY a.asked_at DESC LIMIT :limit;

-- name: approvals_with_id
-- The question with this id, or about the call with this id.
SELECT * FROM approvals
WHERE (approval_id = :id OR tool_call_id = :id) AND agent = COALESCE(:agent, agent)
  AND outcome IS NULL;

-- name: list_rules
-- The rules of all agents, or of one, that hold.
SELECT * FROM approval_rules
WHERE agent = COALESCE(:agent, agent) AND revoked_at IS NULL ORDER BY seq DESC LIMIT :limit;

-- name: rules_with_id
-- The rule with this id; a copy of an agent has rules with the same ids.
SELECT * FROM approval_rules
WHERE id = :id AND agent = COALESCE(:agent, agent) AND revoked_at IS NULL;
