-- When each agent was last talked to, so that the list of conversations reads one page of an index.
-- Apart from `agents`: every turn writes it, and a row there may hold a long state.
CREATE TABLE conversations (
    agent TEXT NOT NULL PRIMARY KEY,
    class TEXT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);
INSERT INTO conversations (agent, class, updated_at)
SELECT a.id, a.class,
       (SELECT t.created_at FROM turns t WHERE t.agent = a.id ORDER BY t.seq DESC LIMIT 1)
FROM agents a WHERE EXISTS (SELECT 1 FROM turns t WHERE t.agent = a.id);
CREATE INDEX conversations_by_age ON conversations (class, updated_at DESC, agent);
