-- Values that an agent and its features keep; each owner has its own keys.
CREATE TABLE storage (
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (agent, owner, key)
);
