-- Search over what was said. Made from `messages` by a job, and always behind them by a little:
-- `search_marks` says up to which message each class is indexed, `search_again` which of those have
-- changed or gone since. A message is long enough for several entries, or has no text and none.
CREATE TABLE search_marks (
    class TEXT NOT NULL PRIMARY KEY,
    upto BIGINT NOT NULL
);
CREATE TABLE search_again (
    seq INTEGER PRIMARY KEY
);
CREATE TABLE search_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    message_id TEXT NOT NULL,
    whose TEXT,
    role TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    scope TEXT NOT NULL,
    text TEXT NOT NULL,
    lead TEXT NOT NULL,
    parts TEXT NOT NULL,
    UNIQUE (seq, piece)
);
CREATE INDEX search_entries_by_agent ON search_entries (agent, whose);
-- Whose words stand in `lead` of an entry: it is made anew when one of them changes.
CREATE TABLE search_leads (
    above BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (above, seq)
);
CREATE INDEX search_leads_by_entry ON search_leads (seq);
CREATE VIRTUAL TABLE search_words USING fts5(
    text, lead, scope,
    content='search_entries', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE search_parts USING fts5(
    parts, content='search_entries', content_rowid='id', tokenize='trigram'
);
CREATE TRIGGER search_entry_added AFTER INSERT ON search_entries BEGIN
    INSERT INTO search_words (rowid, text, lead, scope)
    VALUES (new.id, new.text, new.lead, new.scope);
    INSERT INTO search_parts (rowid, parts) SELECT new.id, new.parts WHERE new.parts <> '';
END;
CREATE TRIGGER search_entry_gone AFTER DELETE ON search_entries BEGIN
    INSERT INTO search_words (search_words, rowid, text, lead, scope)
    VALUES ('delete', old.id, old.text, old.lead, old.scope);
    INSERT INTO search_parts (search_parts, rowid, parts)
    SELECT 'delete', old.id, old.parts WHERE old.parts <> '';
END;
-- Whatever deletes or changes a message, its entries are out of date from the same commit on. Where
-- nothing is indexed there is no mark, and nothing is written.
CREATE TRIGGER search_message_gone AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM search_marks
             WHERE class = substr(old.agent, 1, instr(old.agent, '/') - 1) AND upto >= old.seq)
BEGIN
    INSERT OR IGNORE INTO search_again (seq) VALUES (old.seq);
    INSERT OR IGNORE INTO search_again (seq) SELECT seq FROM search_leads WHERE above = old.seq;
END;
CREATE TRIGGER search_message_changed AFTER UPDATE OF content ON messages
WHEN EXISTS (SELECT 1 FROM search_marks
             WHERE class = substr(old.agent, 1, instr(old.agent, '/') - 1) AND upto >= old.seq)
BEGIN
    INSERT OR IGNORE INTO search_again (seq) VALUES (old.seq);
    INSERT OR IGNORE INTO search_again (seq) SELECT seq FROM search_leads WHERE above = old.seq;
END;
