-- Starts of agents that may kill the process.

-- name: count_start_deaths
-- A new life: whoever was being started in one that nobody had asked to stop has one death more.
UPDATE starts SET boot = NULL, deaths = deaths + CASE
    WHEN EXISTS (SELECT 1 FROM boots WHERE boots.id = starts.boot AND boots.stopped_at IS NULL)
    THEN 1 ELSE 0 END
WHERE boot IS NOT NULL;

-- name: deadly_starts
-- The agents at whose start the process has died.
SELECT agent, deaths FROM starts WHERE deaths > 0;

-- name: begin_start
-- An agent is about to be started.
INSERT INTO starts (agent, boot) VALUES (:agent, :boot)
ON CONFLICT (agent) DO UPDATE SET boot = excluded.boot;

-- name: end_start
-- It has started.
DELETE FROM starts WHERE agent = :agent;

-- name: parked_start
-- How often the process died at the start of an agent that is not started any more.
SELECT deaths FROM starts WHERE agent = :agent AND boot IS NULL AND deaths >= :deaths;
