-- The highest epoch that went with a deleted agent: a new agent of its name begins above it, so that
-- nobody who still writes for the old one can be taken for its owner. One row.
CREATE TABLE removed_epochs (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    highest BIGINT NOT NULL
);
