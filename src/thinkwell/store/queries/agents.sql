-- name: claim_agent
-- Take an agent: its row is made on the first claim, every claim raises the epoch.
INSERT INTO agents (id, class, name, epoch, generation, state, created_at)
VALUES (:id, :class, :name, COALESCE((SELECT highest FROM removed_epochs), 0) + 1, 0, NULL, :now)
ON CONFLICT (id) DO UPDATE SET epoch = agents.epoch + 1
RETURNING epoch, generation, state;

-- name: bear_agent
-- The first write of an agent that was only looked at so far.
INSERT INTO agents (id, class, name, epoch, generation, state, created_at)
VALUES (:id, :class, :name, COALESCE((SELECT highest FROM removed_epochs), 0) + 1, 0, NULL, :now)
ON CONFLICT (id) DO NOTHING
RETURNING epoch;

-- name: agent_epoch
-- The epoch one agent is owned under. Nobody owns one that is being deleted.
SELECT epoch FROM agents WHERE id = :id AND deleted_at IS NULL;

-- name: agent_epochs
-- The epochs of several agents; ids is a JSON array.
SELECT id, epoch FROM agents
WHERE id IN (SELECT value FROM json_each(:ids)) AND deleted_at IS NULL;

-- name: agent_row
-- All that is known of one agent.
SELECT id, class, name, epoch, generation, state, created_at FROM agents WHERE id = :id;

-- name: set_agent_state
-- Replace the state of an agent.
UPDATE agents SET state = :state WHERE id = :id;

-- name: bump_generation
-- A clear: turns of earlier generations no longer count.
UPDATE agents SET generation = generation + 1 WHERE id = :id RETURNING generation;

-- name: conversations
-- The agents of a class that have been talked to, the latest first, with their first question.
SELECT a.name, c.updated_at,
       (SELECT m.content FROM messages m
        WHERE m.agent = c.agent AND m.session = '' AND m.role = 'user'
        ORDER BY m.seq LIMIT 1) AS first
FROM conversations c JOIN agents a ON a.id = c.agent
WHERE c.class = :class
ORDER BY c.updated_at DESC, c.agent LIMIT :limit OFFSET :offset;

-- name: touch_conversation
-- An agent is talked to.
INSERT INTO conversations (agent, class, updated_at) VALUES (:agent, :class, :updated_at)
ON CONFLICT (agent) DO UPDATE SET updated_at = excluded.updated_at;

-- name: pause_agent
-- Its turns and jobs wait from now on.
UPDATE agents SET paused_at = :now, pause_reason = :reason WHERE id = :id AND deleted_at IS NULL;

-- name: resume_agent
-- They go on.
UPDATE agents SET paused_at = NULL, pause_reason = NULL
WHERE id = :id AND paused_at IS NOT NULL AND deleted_at IS NULL;

-- name: paused_agents
-- All that wait, and why.
SELECT id, pause_reason FROM agents WHERE paused_at IS NOT NULL AND deleted_at IS NULL;

-- name: all_agents
-- The ids of all agents.
SELECT id FROM agents WHERE deleted_at IS NULL;
