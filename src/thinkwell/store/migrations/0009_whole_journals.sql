-- A packed journal keeps its events beside its chunks. `format` says how to read the row: 0 has the
-- chunks as JSON in `chunks`, 1 has `stream` and `events` (journal/packing.py).
ALTER TABLE packed_journals ADD COLUMN format BIGINT NOT NULL DEFAULT 0;
ALTER TABLE packed_journals ADD COLUMN stream BLOB;
ALTER TABLE packed_journals ADD COLUMN events BLOB;
