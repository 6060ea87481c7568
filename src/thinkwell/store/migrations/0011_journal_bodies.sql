-- What journals refer to: texts that many turns have in common, and what messages said before.
CREATE TABLE blobs (
    hash TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE blob_uses (
    agent TEXT NOT NULL,
    hash TEXT NOT NULL,
    used_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (agent, hash)
);
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);
CREATE TABLE message_versions (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    version BIGINT NOT NULL,
    replaced_at DOUBLE PRECISION NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (agent, session, id, version)
);
