-- Who a job works for: whoever asked for the turn or the call that enqueued it.
ALTER TABLE jobs ADD COLUMN principal TEXT;
ALTER TABLE jobs ADD COLUMN read_only BIGINT NOT NULL DEFAULT 0;
