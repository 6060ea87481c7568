-- What the command line asks, over all agents. It reads beside the server, so none of these is hot.

-- name: list_turns
-- Turns of all agents, the newest first. A parked turn that was retried is not listed as parked;
-- one that waits because its agent's start kills the process is.
SELECT t.agent, t.id, t.trigger, t.status, t.stop_reason, t.attempt, t.error, t.created_at,
       t.started_at, t.settled_at, json_extract(t.usage, '$.nanoUsd') AS nano_usd,
       s.deaths AS start_deaths
FROM turns t LEFT JOIN starts s ON s.agent = t.agent AND s.boot IS NULL AND s.deaths >= :deaths
                                   AND t.status IN ('accepted', 'running')
WHERE t.agent = COALESCE(:agent, t.agent) AND t.status = COALESCE(:status, t.status)
  AND t.created_at >= :after
  AND (:parked = 0 OR s.deaths IS NOT NULL
       OR (t.stop_reason = 'parked'
                       AND NOT EXISTS (SELECT 1 FROM turns r
                                       WHERE r.agent = t.agent AND r.id = t.id || ':retry')))
ORDER BY t.seq DESC LIMIT :limit;

-- name: turns_with_id
-- The turns of all agents that have this id.
SELECT * FROM turns WHERE id = :id AND agent = COALESCE(:agent, agent) ORDER BY agent;

-- name: calls_with_turn
-- The tool calls of one turn, without what went in and came out.
SELECT call_id, tool_name, effect, status, outcome, error, claimed_at, settled_at
FROM tool_calls WHERE agent = :agent AND turn = :turn ORDER BY claimed_at, call_id;

-- name: list_jobs
-- Jobs of all agents, the newest first. A held one waits, but has a word of its own.
SELECT agent, id, name, status, due_at, attempt, max_attempts, held, error, cancel_requested,
       created_at, started_at, finished_at
FROM jobs
WHERE agent = COALESCE(:agent, agent)
  AND (:status IS NULL OR CASE WHEN held IS NULL THEN status ELSE 'held' END = :status)
  AND name = COALESCE(:name, name)
ORDER BY seq DESC LIMIT :limit;

-- name: list_schedules
-- What is planned and has not ended, in all agents, the next one first.
SELECT * FROM jobs
WHERE kind IN ('task', 'cron', 'interval', 'delayed', 'scheduled') AND finished_at IS NULL
  AND agent = COALESCE(:agent, agent)
ORDER BY due_at, seq LIMIT :limit;

-- name: jobs_with_id
-- The jobs of all agents that have this id.
SELECT * FROM jobs WHERE id = :id AND agent = COALESCE(:agent, agent) ORDER BY agent;

-- name: agents_overview
-- All agents with the number of their turns, the latest used first.
SELECT a.id, a.created_at, a.paused_at, a.pause_reason, COUNT(t.seq) AS turns, MAX(t.created_at) AS last_turn_at,
       SUM(CASE WHEN t.status IN ('accepted', 'running') THEN 1 ELSE 0 END) AS unsettled,
       SUM(CASE WHEN s.deaths IS NOT NULL AND t.status IN ('accepted', 'running') THEN 1
                WHEN t.stop_reason = 'parked'
                     AND NOT EXISTS (SELECT 1 FROM turns r
                                     WHERE r.agent = t.agent AND r.id = t.id || ':retry')
                THEN 1 ELSE 0 END) AS parked
FROM agents a LEFT JOIN turns t ON t.agent = a.id
     LEFT JOIN starts s ON s.agent = a.id AND s.boot IS NULL AND s.deaths >= :deaths
WHERE a.class = COALESCE(:class, a.class) AND a.deleted_at IS NULL
GROUP BY a.id, a.created_at, a.paused_at, a.pause_reason ORDER BY last_turn_at DESC, a.id LIMIT :limit;

-- name: agent_facts
-- One agent and how much is stored of it.
SELECT a.id, a.class, a.name, a.created_at, a.state, a.paused_at, a.pause_reason,
       (SELECT MAX(t.created_at) FROM turns t WHERE t.agent = a.id) AS last_turn_at,
       (SELECT COUNT(*) FROM messages m WHERE m.agent = a.id) AS messages,
       (SELECT COALESCE(SUM(m.bytes), 0) FROM messages m WHERE m.agent = a.id) AS message_bytes,
       (SELECT COUNT(*) FROM storage s WHERE s.agent = a.id) AS stored_values
FROM agents a WHERE a.id = :agent AND a.deleted_at IS NULL;

-- name: agent_turn_counts
-- How many turns of one agent have which status.
SELECT CASE WHEN stop_reason = 'parked' THEN 'parked' ELSE status END AS state, COUNT(*) AS turns
FROM turns WHERE agent = :agent GROUP BY 1 ORDER BY 2 DESC;

-- name: agent_job_counts
-- How many jobs of one agent have which status.
SELECT CASE WHEN held IS NULL THEN status ELSE 'held' END AS state, COUNT(*) AS jobs
FROM jobs WHERE agent = :agent GROUP BY 1 ORDER BY 2 DESC;

-- name: agent_classes
-- The classes of the agents in this file.
SELECT DISTINCT class FROM agents ORDER BY class;

-- name: count_jobs
-- How many jobs of agents have not ended or have failed; the server's own are not counted.
SELECT COALESCE(SUM(status = 'waiting' AND held IS NULL), 0) AS waiting,
       COALESCE(SUM(status = 'running'), 0) AS running,
       COALESCE(SUM(held IS NOT NULL), 0) AS held,
       COALESCE(SUM(status = 'failed'), 0) AS failed
FROM jobs WHERE agent NOT LIKE '/%';

-- name: count_work
-- How many turns there are, how many have not ended, how many are parked.
SELECT COUNT(*) AS turns,
       COALESCE(SUM(CASE WHEN status = 'running' THEN 1 ELSE 0 END), 0) AS running,
       COALESCE(SUM(CASE WHEN status = 'accepted' THEN 1 ELSE 0 END), 0) AS waiting,
       COALESCE(SUM(CASE WHEN status IN ('accepted', 'running')
                              AND EXISTS (SELECT 1 FROM starts s WHERE s.agent = t.agent
                                          AND s.boot IS NULL AND s.deaths >= :deaths)
                         THEN 1
                         WHEN stop_reason = 'parked'
                              AND NOT EXISTS (SELECT 1 FROM turns r
                                              WHERE r.agent = t.agent AND r.id = t.id || ':retry')
                         THEN 1 ELSE 0 END), 0) AS parked,
       (SELECT COUNT(*) FROM agents) AS agents,
       (SELECT COUNT(*) FROM messages) AS messages
FROM turns t;

-- name: agents_by_class
-- How many agents each class has.
SELECT class, COUNT(*) AS agents FROM agents WHERE deleted_at IS NULL GROUP BY class ORDER BY class;

-- name: turns_to_finish
-- Turns that have not ended, and parked ones that nobody has retried.
SELECT t.* FROM turns t
WHERE t.status IN ('accepted', 'running')
   OR (t.stop_reason = 'parked' AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.agent = t.agent
                                                AND r.id = t.id || ':retry'))
ORDER BY t.seq;

-- name: replies_that_wait
-- Replies whose last turn ended to wait for a person or a client.
SELECT t.agent, t.message_id, t.client_tools, m.content
FROM turns t JOIN messages m ON m.agent = t.agent AND m.id = t.message_id
WHERE t.stop_reason IN ('approval', 'client_tool')
  AND t.seq = (SELECT MAX(n.seq) FROM turns n WHERE n.agent = t.agent)
ORDER BY t.seq;

-- name: unknown_outcomes
-- Calls of turns that have ended whose outcome nobody knows, the newest first.
SELECT c.agent, c.turn, c.call_id, c.tool_name, c.effect, c.idempotency_key, c.input, c.claimed_at
FROM tool_calls c JOIN turns t ON t.agent = c.agent AND t.id = c.turn
WHERE c.settled_at IS NULL AND t.status NOT IN ('accepted', 'running')
  AND c.agent = COALESCE(:agent, c.agent)
ORDER BY c.claimed_at DESC LIMIT :limit;

-- name: jobs_to_finish
-- Jobs of agents that have not ended; the server's own are left out.
SELECT agent, id, name FROM jobs
WHERE status IN ('waiting', 'running') AND agent NOT LIKE '/%' ORDER BY seq;

-- name: agent_states
-- The stored states.
SELECT id, state FROM agents WHERE state IS NOT NULL AND deleted_at IS NULL ORDER BY id;

-- name: open_work
-- How many turns and jobs have not ended; each count has a partial index of its own.
SELECT (SELECT COUNT(*) FROM turns WHERE status IN ('accepted', 'running')) AS turns,
       (SELECT COUNT(*) FROM jobs
        WHERE status = 'waiting' AND held IS NULL AND due_at <= :now) AS jobs_due,
       (SELECT COUNT(*) FROM jobs WHERE status = 'running') AS jobs_running,
       (SELECT COUNT(*) FROM jobs WHERE held IS NOT NULL) AS jobs_held;
