-- An agent that is deleted is marked first and its rows go piece by piece: the mark says after a crash
-- that they still have to.
ALTER TABLE agents ADD COLUMN deleted_at DOUBLE PRECISION;
CREATE INDEX agents_deleted ON agents (id) WHERE deleted_at IS NOT NULL;
