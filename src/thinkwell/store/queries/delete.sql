-- Deleting an agent: it is marked, then its rows go, a bounded piece at a time, the agent itself last.
-- There is a statement for each table that names agents; a test holds them together. What is in the
-- live journal is erased by position: that table has no index by agent.

-- name: mark_deleted
-- From now on nobody owns it or finds it. Rows without an agent get one, so that they can go.
INSERT INTO agents (id, class, name, epoch, generation, state, created_at, deleted_at)
VALUES (:agent, :class, :name, 0, 0, NULL, :now, :now)
ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at, state = NULL;

-- name: rows_of_agent
-- Whether anything is stored of an agent. One that is known in `agents` answers at once.
SELECT 1 AS found FROM agents WHERE id = :agent
UNION ALL SELECT 1 FROM conversations WHERE agent = :agent
UNION ALL SELECT 1 FROM sessions WHERE agent = :agent
UNION ALL SELECT 1 FROM messages WHERE agent = :agent
UNION ALL SELECT 1 FROM turns WHERE agent = :agent
UNION ALL SELECT 1 FROM packed_journals WHERE agent = :agent
UNION ALL SELECT 1 FROM tool_calls WHERE agent = :agent
UNION ALL SELECT 1 FROM decisions WHERE agent = :agent
UNION ALL SELECT 1 FROM starts WHERE agent = :agent
UNION ALL SELECT 1 FROM approvers WHERE agent = :agent
UNION ALL SELECT 1 FROM approvals WHERE agent = :agent
UNION ALL SELECT 1 FROM approval_rules WHERE agent = :agent
UNION ALL SELECT 1 FROM storage WHERE agent = :agent
UNION ALL SELECT 1 FROM jobs WHERE agent = :agent
UNION ALL SELECT 1 FROM message_versions WHERE agent = :agent
UNION ALL SELECT 1 FROM context_blocks WHERE agent = :agent
UNION ALL SELECT 1 FROM prompts WHERE agent = :agent
UNION ALL SELECT 1 FROM blob_uses WHERE agent = :agent
UNION ALL SELECT 1 FROM spending WHERE agent = :agent
UNION ALL SELECT 1 FROM reservations WHERE agent = :agent
LIMIT 1;

-- name: deleted_agents
-- Whose rows still have to go.
SELECT id FROM agents WHERE deleted_at IS NOT NULL ORDER BY id;

-- name: remove_sessions
-- A piece of an agent's rows of sessions.
DELETE FROM sessions WHERE agent = :agent AND id IN (
    SELECT id FROM sessions WHERE agent = :agent LIMIT :limit);

-- name: remove_messages
-- A piece of an agent's rows of messages.
DELETE FROM messages WHERE seq IN (
    SELECT seq FROM messages WHERE agent = :agent LIMIT :limit);

-- name: remove_turns
-- A piece of an agent's rows of turns.
DELETE FROM turns WHERE seq IN (
    SELECT seq FROM turns WHERE agent = :agent LIMIT :limit);

-- name: remove_packed_journals
-- A piece of an agent's rows of packed_journals.
DELETE FROM packed_journals WHERE agent = :agent AND turn IN (
    SELECT turn FROM packed_journals WHERE agent = :agent LIMIT :limit);

-- name: remove_tool_calls
-- A piece of an agent's rows of tool_calls.
DELETE FROM tool_calls WHERE agent = :agent AND (turn, call_id) IN (
    SELECT turn, call_id FROM tool_calls WHERE agent = :agent LIMIT :limit);

-- name: remove_decisions
-- A piece of an agent's rows of decisions.
DELETE FROM decisions WHERE seq IN (
    SELECT seq FROM decisions WHERE agent = :agent LIMIT :limit);

-- name: remove_approvers
-- A piece of an agent's rows of approvers.
DELETE FROM approvers WHERE agent = :agent AND (message_id, tool_call_id) IN (
    SELECT message_id, tool_call_id FROM approvers WHERE agent = :agent LIMIT :limit);

-- name: remove_approvals
-- A piece of an agent's rows of approvals.
DELETE FROM approvals WHERE agent = :agent AND (message_id, tool_call_id) IN (
    SELECT message_id, tool_call_id FROM approvals WHERE agent = :agent LIMIT :limit);

-- name: remove_approval_rules
-- A piece of an agent's rows of approval_rules.
DELETE FROM approval_rules WHERE seq IN (
    SELECT seq FROM approval_rules WHERE agent = :agent LIMIT :limit);

-- name: remove_storage
-- A piece of an agent's rows of storage.
DELETE FROM storage WHERE agent = :agent AND (owner, key) IN (
    SELECT owner, key FROM storage WHERE agent = :agent LIMIT :limit);

-- name: remove_jobs
-- A piece of an agent's rows of jobs.
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE agent = :agent LIMIT :limit);

-- name: remove_message_versions
-- A piece of an agent's rows of message_versions.
DELETE FROM message_versions WHERE agent = :agent AND (session, id, version) IN (
    SELECT session, id, version FROM message_versions WHERE agent = :agent LIMIT :limit);

-- name: remove_context_blocks
-- A piece of an agent's rows of context_blocks.
DELETE FROM context_blocks WHERE agent = :agent AND (session, label, key, version) IN (
    SELECT session, label, key, version FROM context_blocks WHERE agent = :agent LIMIT :limit);

-- name: remove_prompts
-- A piece of an agent's rows of prompts.
DELETE FROM prompts WHERE agent = :agent AND (session, principal) IN (
    SELECT session, principal FROM prompts WHERE agent = :agent LIMIT :limit);

-- name: remove_starts
-- An agent's row of starts.
DELETE FROM starts WHERE agent = :agent AND :limit > 0;

-- name: remove_conversations
-- An agent's row of conversations.
DELETE FROM conversations WHERE agent = :agent AND :limit > 0;

-- name: blob_uses_of
-- A piece of what an agent refers to.
SELECT hash FROM blob_uses WHERE agent = :agent LIMIT :limit;

-- name: remember_epoch
-- The epochs of this agent must not begin anew with the next one of its name.
INSERT INTO removed_epochs (id, highest) SELECT 1, epoch FROM agents WHERE id = :agent
ON CONFLICT (id) DO UPDATE SET highest = excluded.highest
WHERE excluded.highest > removed_epochs.highest;

-- name: remove_agent
-- The agent itself, when nothing else is left of it.
DELETE FROM agents WHERE id = :agent;
