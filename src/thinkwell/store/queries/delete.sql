-- Deleting an agent: one statement for each table that names agents; a test holds them together.
-- What is in the live journal has gone with the clear before: that table has no index by agent.

-- name: remove_sessions
-- An agent's rows of sessions.
DELETE FROM sessions WHERE agent = :agent;

-- name: remove_messages
-- An agent's rows of messages.
DELETE FROM messages WHERE agent = :agent;

-- name: remove_turns
-- An agent's rows of turns.
DELETE FROM turns WHERE agent = :agent;

-- name: remove_packed_journals
-- An agent's rows of packed_journals.
DELETE FROM packed_journals WHERE agent = :agent;

-- name: remove_tool_calls
-- An agent's rows of tool_calls.
DELETE FROM tool_calls WHERE agent = :agent;

-- name: remove_decisions
-- An agent's rows of decisions.
DELETE FROM decisions WHERE agent = :agent;

-- name: remove_starts
-- An agent's rows of starts.
DELETE FROM starts WHERE agent = :agent;

-- name: remove_approvers
-- An agent's rows of approvers.
DELETE FROM approvers WHERE agent = :agent;

-- name: remove_storage
-- An agent's rows of storage.
DELETE FROM storage WHERE agent = :agent;

-- name: remove_jobs
-- An agent's rows of jobs.
DELETE FROM jobs WHERE agent = :agent;

-- name: remove_blob_uses
-- An agent's rows of blob_uses.
DELETE FROM blob_uses WHERE agent = :agent;

-- name: remove_message_versions
-- An agent's rows of message_versions.
DELETE FROM message_versions WHERE agent = :agent;

-- name: remove_conversations
-- An agent's rows of conversations.
DELETE FROM conversations WHERE agent = :agent;

-- name: remove_agent
-- The agent itself.
DELETE FROM agents WHERE id = :agent;
