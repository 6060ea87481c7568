-- Fibers: jobs that run a function of the agent and remember how far it came.

-- name: newest_fibers
-- The fibers of one agent, the newest first.
SELECT * FROM jobs WHERE agent = :agent AND name = :name ORDER BY seq DESC LIMIT :limit;

-- name: first_ended_fibers
-- The fibers of one agent that have ended, in the order they did.
SELECT * FROM jobs WHERE agent = :agent AND name = :name AND finished_at IS NOT NULL
ORDER BY finished_at, seq LIMIT :limit;

-- name: resolve_fiber
-- Somebody says what came of a fiber that was interrupted.
UPDATE jobs SET stash = :stash WHERE agent = :agent AND id = :id AND status = 'done';

-- name: delete_ended_job
-- A job that has ended, or whose handler says so, is forgotten.
DELETE FROM jobs WHERE agent = :agent AND id = :id AND status IN ('running', 'done', 'failed', 'cancelled');
