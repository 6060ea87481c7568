-- What budgets have been used for: one row for each turn, agent, principal or day that has one.
CREATE TABLE spending (
    scope TEXT NOT NULL PRIMARY KEY,
    agent TEXT,
    principal TEXT,
    nano_usd BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    reserved_nano_usd BIGINT NOT NULL DEFAULT 0,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    added_nano_usd BIGINT NOT NULL DEFAULT 0,
    added_tokens BIGINT NOT NULL DEFAULT 0,
    changed_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX spending_of_agent ON spending (agent) WHERE agent IS NOT NULL;

-- The most that a step which runs can cost; it is part of the reserved sums above.
CREATE TABLE reservations (
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    step BIGINT NOT NULL,
    scopes TEXT NOT NULL,
    nano_usd BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    reserved_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (agent, turn)
);
