-- Agents at whose start the process may have died.
CREATE TABLE starts (
    agent TEXT PRIMARY KEY,
    boot BIGINT,
    deaths BIGINT NOT NULL DEFAULT 0
);
