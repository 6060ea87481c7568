-- What a turn's row remembers of attempts that died, and the lives of the process.
ALTER TABLE turns ADD COLUMN incident TEXT;
ALTER TABLE turns DROP COLUMN attempt_seq;
ALTER TABLE turns DROP COLUMN stalled;
CREATE TABLE boots (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at DOUBLE PRECISION NOT NULL,
    steady BIGINT NOT NULL DEFAULT 0,
    stopped_at DOUBLE PRECISION
);
