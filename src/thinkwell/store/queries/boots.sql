-- The lives of the process.

-- name: begin_boot
-- The process has started.
INSERT INTO boots (started_at) VALUES (:started_at) RETURNING id;

-- name: last_boots
-- The two lives before, the last one first.
SELECT id, started_at, steady, stopped_at FROM boots ORDER BY id DESC LIMIT 2;

-- name: boot_by_id
-- One life.
SELECT stopped_at FROM boots WHERE id = :id;

-- name: mark_steady
-- It has lasted for a while.
UPDATE boots SET steady = 1 WHERE id = :id;

-- name: mark_stopped
-- A stop was asked for.
UPDATE boots SET stopped_at = :stopped_at WHERE id = :id;

-- name: drop_old_boots
-- Lives nobody needs to know of any more.
DELETE FROM boots WHERE started_at < :before;

-- name: attempted_turns
-- Unsettled turns that have begun.
SELECT agent, id, incident FROM turns WHERE status IN ('accepted', 'running') AND attempt > 0;
