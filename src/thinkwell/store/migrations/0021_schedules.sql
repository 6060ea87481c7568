-- Jobs that come again, and jobs that stand in line: schedules, declared tasks, the queue.
ALTER TABLE jobs ADD COLUMN kind TEXT;
ALTER TABLE jobs ADD COLUMN recurs TEXT;
ALTER TABLE jobs ADD COLUMN scheduled_for DOUBLE PRECISION;
ALTER TABLE jobs ADD COLUMN outcome TEXT;
CREATE INDEX jobs_of_kind ON jobs (agent, kind, held, seq)
    WHERE kind IS NOT NULL AND finished_at IS NULL;
