-- An operator has paused an agent: its turns and jobs wait until it is resumed.
ALTER TABLE agents ADD COLUMN paused_at DOUBLE PRECISION;
ALTER TABLE agents ADD COLUMN pause_reason TEXT;
