-- Sessions: the conversations of an agent and where each stands.

-- name: touch_session
-- Something was appended: the session exists, and its head is the newest message again.
INSERT INTO sessions (agent, id, active_leaf) VALUES (:agent, :session, NULL)
ON CONFLICT (agent, id) DO UPDATE SET active_leaf = NULL WHERE sessions.active_leaf IS NOT NULL;

-- name: set_active_leaf
-- Pin the head to a message, or let it follow the newest one again with NULL.
INSERT INTO sessions (agent, id, active_leaf) VALUES (:agent, :session, :leaf)
ON CONFLICT (agent, id) DO UPDATE SET active_leaf = excluded.active_leaf;

-- name: session_ids
-- The sessions of an agent.
SELECT id FROM sessions WHERE agent = :agent ORDER BY id;
