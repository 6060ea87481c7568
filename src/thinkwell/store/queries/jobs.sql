-- Job rows: one durable call of a named method each.

-- name: insert_job
-- Enqueue a job. One of the queue is held while another one is in front of it.
INSERT INTO jobs (agent, id, name, status, due_at, idempotency_key, max_attempts, base_delay,
                  max_delay, created_at, payload, principal, read_only, kind, recurs, scheduled_for,
                  held)
VALUES (:agent, :id, :name, 'waiting', :due_at, :key, :max_attempts, :base_delay, :max_delay,
        :created_at, :payload, :principal, :read_only, :kind, :recurs, :scheduled_for,
        CASE WHEN :kind = 'queue' AND (
            EXISTS (SELECT 1 FROM jobs WHERE agent = :agent AND kind = 'queue'
                    AND finished_at IS NULL AND held IS NULL)
            OR EXISTS (SELECT 1 FROM jobs WHERE agent = :agent AND kind = 'queue'
                       AND finished_at IS NULL AND held = :behind))
        THEN :behind END);

-- name: job_by_id
-- One job.
SELECT * FROM jobs WHERE agent = :agent AND id = :id;

-- name: job_by_key
-- One job by its idempotency key.
SELECT * FROM jobs WHERE agent = :agent AND idempotency_key = :key;

-- name: jobs_of_agent
-- The jobs of one agent, the newest first.
SELECT * FROM jobs
WHERE agent = :agent AND status = COALESCE(:status, status) AND name = COALESCE(:name, name)
ORDER BY id DESC LIMIT :limit;

-- name: due_agents
-- Whose jobs are due, in the order they became so, after a place in the wake index.
SELECT agent, due_at, seq FROM jobs
WHERE status = 'waiting' AND held IS NULL AND due_at <= :now
  AND (due_at, seq) > (:due_at, :seq)
ORDER BY due_at, seq LIMIT :limit;

-- name: next_due
-- When the next job is due, after a place in the wake index.
SELECT due_at FROM jobs
WHERE status = 'waiting' AND held IS NULL AND (due_at, seq) > (:due_at, :seq)
ORDER BY due_at, seq LIMIT 1;

-- name: due_job
-- The job of one agent that has been due for the longest time; an innocent one has killed nobody.
SELECT * FROM jobs
WHERE agent = :agent AND status = 'waiting' AND held IS NULL AND due_at <= :now
  AND (deaths = 0 OR NOT :innocent)
ORDER BY due_at, seq LIMIT 1;

-- name: begin_job
-- One more attempt begins, under the lease of this life of the process.
UPDATE jobs SET status = 'running', attempt = :attempt, epoch = :epoch, boot = :boot,
                started_at = :now
WHERE agent = :agent AND id = :id AND status = 'waiting';

-- name: stash_job
-- What the handler wants to remember. It has come on, so earlier deaths count no more.
UPDATE jobs SET stash = :stash, deaths = 0
WHERE agent = :agent AND id = :id AND status = 'running' AND attempt = :attempt;

-- name: finish_job
-- A job ends; one that was to be cancelled ends so, whatever its handler did.
UPDATE jobs SET status = CASE WHEN cancel_requested IS NULL THEN :status ELSE 'cancelled' END,
                error = :error, deaths = :deaths, finished_at = :now, epoch = NULL, boot = NULL
WHERE agent = :agent AND id = :id AND status = 'running' AND attempt = :attempt
RETURNING status;

-- name: retry_job
-- An attempt is over, the job is not: it waits for its next one.
UPDATE jobs SET status = 'waiting', due_at = :due_at, attempt = :left, deaths = :deaths,
                error = :error, epoch = NULL, boot = NULL
WHERE agent = :agent AND id = :id AND status = 'running' AND attempt = :attempt
  AND cancel_requested IS NULL;

-- name: hold_job
-- Nothing can run it in this life of the process.
UPDATE jobs SET held = :held WHERE agent = :agent AND id = :id AND status = 'waiting';

-- name: release_held_jobs
-- A new life may have what was missing. One of the queue stands in line again.
UPDATE jobs SET held = CASE WHEN kind = 'queue' THEN :behind END
WHERE held IS NOT NULL AND held <> :behind;

-- name: stopped_queues
-- Agents whose queue nobody is in front of.
SELECT DISTINCT agent FROM jobs AS behind
WHERE kind = 'queue' AND finished_at IS NULL AND held = :behind
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE agent = behind.agent AND kind = 'queue'
                  AND finished_at IS NULL AND held IS NULL);

-- name: move_queue_up
-- The next one of the queue may begin, unless another one is in front of it.
UPDATE jobs SET held = NULL, due_at = CASE WHEN attempt = 0 THEN MIN(due_at, COALESCE(:now, due_at))
                                         ELSE due_at END
WHERE seq = (SELECT MIN(seq) FROM jobs WHERE agent = :agent AND kind = 'queue'
             AND finished_at IS NULL AND held = :behind)
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE agent = :agent AND kind = 'queue'
                  AND finished_at IS NULL AND held IS NULL)
RETURNING due_at;

-- name: recur_job
-- A job that comes again has had its run: how that ended, and when the next one is.
UPDATE jobs SET status = 'waiting', due_at = :due_at, scheduled_for = :due_at, attempt = 0,
                deaths = :deaths, outcome = :outcome, error = :error, stash = NULL, epoch = NULL,
                boot = NULL
WHERE agent = :agent AND id = :id AND status = 'running' AND attempt = :attempt
  AND cancel_requested IS NULL AND recurs IS NOT NULL;

-- name: rearm_job
-- A job that comes again is given anew: other times, other attempts. One that runs ends first.
UPDATE jobs SET recurs = :recurs, payload = :payload, max_attempts = :max_attempts,
                base_delay = :base_delay, max_delay = :max_delay,
                due_at = CASE WHEN status = 'running' THEN due_at ELSE :due_at END,
                scheduled_for = CASE WHEN status = 'running' THEN scheduled_for ELSE :due_at END,
                attempt = CASE WHEN status = 'running' THEN attempt ELSE 0 END,
                status = CASE WHEN status = 'running' THEN status ELSE 'waiting' END,
                finished_at = CASE WHEN status = 'running' THEN finished_at END,
                cancel_requested = CASE WHEN status = 'running' THEN cancel_requested END,
                held = NULL
WHERE agent = :agent AND id = :id;

-- name: describe_job
-- What a job that comes again says of itself has changed, and its times have not.
UPDATE jobs SET recurs = :recurs, max_attempts = :max_attempts, base_delay = :base_delay,
                max_delay = :max_delay
WHERE agent = :agent AND id = :id;

-- name: end_series
-- A job that runs comes no more after this run.
UPDATE jobs SET recurs = NULL
WHERE agent = :agent AND id = :id AND status = 'running' AND recurs IS NOT NULL;

-- name: jobs_of_kind
-- The jobs of one agent of one kind that have not ended, in the order they were enqueued.
SELECT * FROM jobs WHERE agent = :agent AND kind = :kind AND finished_at IS NULL ORDER BY seq;

-- name: same_job
-- A job of one agent that has not ended and does the same for the same person, at whatever time.
SELECT * FROM jobs
WHERE agent = :agent AND kind = :kind AND finished_at IS NULL AND name = :name
  AND payload IS :payload AND recurs IS :recurs
  AND json_extract(principal, '$.id') IS :person AND read_only = :read_only
ORDER BY seq LIMIT 1;

-- name: count_same_jobs
-- How many such jobs there are, up to a number.
SELECT COUNT(*) AS same FROM (
    SELECT 1 FROM jobs WHERE agent = :agent AND kind = :kind AND finished_at IS NULL
    AND name = :name AND payload IS :payload LIMIT :limit);

-- name: cancel_waiting_job
-- A job that does not run is cancelled at once.
UPDATE jobs SET status = 'cancelled', cancel_requested = :reason, held = NULL, finished_at = :now
WHERE agent = :agent AND id = :id AND status = 'waiting';

-- name: cancel_running_job
-- Somebody wants a running job to stop.
UPDATE jobs SET cancel_requested = :reason
WHERE agent = :agent AND id = :id AND status = 'running' AND cancel_requested IS NULL;

-- name: revive_job
-- An operator wants a job that failed or was cancelled to be tried again, from its stash.
UPDATE jobs SET status = 'waiting', due_at = :now, attempt = 0, deaths = 0,
                held = CASE WHEN kind = 'queue' AND EXISTS (
                    SELECT 1 FROM jobs WHERE agent = :agent AND kind = 'queue'
                    AND finished_at IS NULL AND held IS NULL) THEN :behind END,
                cancel_requested = NULL, finished_at = NULL
WHERE agent = :agent AND id = :id AND status IN ('failed', 'cancelled');

-- name: any_lease
-- Whether some job is running or held.
SELECT 1 FROM jobs WHERE status = 'running'
UNION ALL SELECT 1 FROM jobs WHERE held IS NOT NULL LIMIT 1;

-- name: leased_jobs
-- Jobs that some life of the process has begun and not ended.
SELECT * FROM jobs WHERE status = 'running' ORDER BY seq;

-- name: fail_unreadable_job
-- A job whose row is damaged ends without having run.
UPDATE jobs SET status = 'failed', error = :error, finished_at = :now, held = NULL
WHERE agent = :agent AND id = :id AND status IN ('waiting', 'running');

-- name: drop_ended_jobs
-- Jobs past their retention, a bounded piece at a time. What failed in a queue is kept for longer.
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs
    WHERE finished_at < :before
      AND (kind IS NOT 'queue' OR status <> 'failed' OR finished_at < :dead_before)
    ORDER BY finished_at LIMIT :limit);
