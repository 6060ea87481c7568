-- Fibers: jobs that run a function of the agent and remember how far it came.

-- name: resolve_fiber
-- Somebody says what came of a fiber that was interrupted.
UPDATE jobs SET stash = :stash WHERE agent = :agent AND id = :id AND status = 'done';

-- name: delete_ended_job
-- A job that has ended, or whose handler says so, is forgotten.
DELETE FROM jobs WHERE agent = :agent AND id = :id AND status IN ('running', 'done', 'failed', 'cancelled');
