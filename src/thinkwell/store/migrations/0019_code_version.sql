-- Under which code a turn was accepted.
ALTER TABLE turns ADD COLUMN code TEXT;
