-- Old streams are found without looking at all of them. Rows come in this order: the index only grows
-- at its end.
CREATE INDEX packed_by_age ON packed_journals (settled_at);
