-- The index over what was said: what still has to be indexed, writing entries, finding them.

-- name: search_mark
-- Up to which message a class is indexed.
SELECT upto FROM search_marks WHERE class = :class;

-- name: set_search_mark
-- A class is indexed up to this message. A mark never goes back.
INSERT INTO search_marks (class, upto) VALUES (:class, :upto)
ON CONFLICT (class) DO UPDATE SET upto = MAX(search_marks.upto, excluded.upto);

-- name: newest_message
-- The newest message of all agents.
SELECT COALESCE(MAX(seq), 0) AS seq FROM messages;

-- name: search_ahead
-- The next messages of a class after its mark.
SELECT seq, bytes FROM messages
WHERE seq > :after AND seq <= :upto AND agent >= :first AND agent < :last
ORDER BY seq LIMIT :limit;

-- name: search_changed
-- Messages whose entries are out of date, also those that are gone. One of an agent that is just
-- being imported waits: nobody knows yet who asked for it.
SELECT g.seq, COALESCE(m.bytes, 0) AS bytes FROM search_again g
LEFT JOIN messages m ON m.seq = g.seq
LEFT JOIN agents a ON a.id = m.agent
WHERE m.seq IS NULL OR a.deleted_at IS NULL
ORDER BY g.seq LIMIT :limit;

-- name: search_sources
-- Messages to index with the two above each; seqs is a JSON array.
SELECT m.seq, m.agent, m.session, m.id, m.role, m.version, m.created_at, m.content,
       p.seq AS p_seq, p.id AS p_id, p.role AS p_role, p.version AS p_version,
       p.created_at AS p_created_at, p.content AS p_content,
       q.seq AS q_seq, q.id AS q_id, q.role AS q_role, q.version AS q_version,
       q.created_at AS q_created_at, q.content AS q_content,
       a.deleted_at IS NOT NULL AS held
FROM messages m
LEFT JOIN messages p ON p.agent = m.agent AND p.session = m.session AND p.id = m.parent_id
LEFT JOIN messages q ON q.agent = m.agent AND q.session = m.session AND q.id = p.parent_id
LEFT JOIN agents a ON a.id = m.agent
WHERE m.seq IN (SELECT value FROM json_each(:seqs));

-- name: search_askers
-- Turns that may have brought these messages: those that wrote one of them, or an answer to one;
-- ids is a JSON array.
SELECT t.principal, t.created_at, t.continuation, t.options, t.message_id, t.message_ids, t.input
FROM turns t WHERE t.agent = :agent AND t.message_id IN (
    SELECT value FROM json_each(:ids)
    UNION SELECT c.id FROM messages c JOIN json_each(:ids) i
        ON c.agent = :agent AND c.session = :session AND c.parent_id = i.value)
ORDER BY t.seq;

-- name: search_recent_askers
-- The newest turns of an agent: some may have asked and not been answered.
SELECT principal, created_at, continuation, options, message_id, message_ids, input
FROM turns WHERE agent = :agent ORDER BY seq DESC LIMIT :limit;

-- name: search_askers_of
-- The turns whose input has one of these messages, wherever they are; ids is a JSON array. Looks at
-- every turn of the agent: for what the two before have not found.
SELECT principal, created_at, continuation, options, message_id, message_ids, input
FROM turns t WHERE agent = :agent AND EXISTS (
    SELECT 1 FROM json_each(COALESCE(t.input, '[]')) i
    WHERE json_extract(i.value, '$.id') IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT 1 FROM json_each(COALESCE(t.message_ids, '[]')) i
    WHERE i.value IN (SELECT value FROM json_each(:ids)))
ORDER BY t.seq;

-- name: search_versions
-- Which of these messages are there, in which version; seqs is a JSON array.
SELECT seq, version FROM messages WHERE seq IN (SELECT value FROM json_each(:seqs));

-- name: add_search_entry
-- One entry; a trigger takes its words into the index.
INSERT INTO search_entries (seq, piece, agent, session, message_id, whose, role, created_at, scope,
                            text, lead, parts)
VALUES (:seq, :piece, :agent, :session, :message_id, :whose, :role, :created_at, :scope,
        :text, :lead, :parts);

-- name: add_search_lead
-- An entry has words of a message above it.
INSERT INTO search_leads (above, seq) VALUES (:above, :seq) ON CONFLICT (above, seq) DO NOTHING;

-- name: drop_search_entries
-- The entries of a message; a trigger takes their words out of the index.
DELETE FROM search_entries WHERE seq = :seq;

-- name: drop_search_leads
-- Whose words the entries of a message had.
DELETE FROM search_leads WHERE seq = :seq;

-- name: index_again
-- A message is to be indexed again.
INSERT INTO search_again (seq) VALUES (:seq) ON CONFLICT (seq) DO NOTHING;

-- name: indexed_again
-- It has been.
DELETE FROM search_again WHERE seq = :seq;

-- name: merge_words
-- Merge a piece of the index, so that nothing is left in it of words that were taken out. The first
-- piece is negative: then all of it is merged into one.
INSERT INTO search_words (search_words, rank) VALUES ('merge', :pages);

-- name: merge_parts
-- The same for identifiers and texts without spaces.
INSERT INTO search_parts (search_parts, rank) VALUES ('merge', :pages);

-- name: changes_so_far
-- How many rows this connection has changed: a merge that has nothing left to do changes none.
SELECT total_changes() AS count;

-- name: count_matches
-- In how many entries a word is, up to a limit.
SELECT COUNT(*) AS count
FROM (SELECT 1 FROM search_words WHERE search_words MATCH :match LIMIT :most);

-- name: matching_entries
-- The newest entries that match.
SELECT rowid AS id FROM search_words WHERE search_words MATCH :match
ORDER BY rowid DESC LIMIT :most;

-- name: entries_with_word
-- The newest entries that have a word: in their own text, and in the text before it.
SELECT id, 0 AS in_lead FROM (SELECT rowid AS id FROM search_words
                              WHERE search_words MATCH :in_text ORDER BY rowid DESC LIMIT :most)
UNION ALL
SELECT id, 1 FROM (SELECT rowid AS id FROM search_words
                   WHERE search_words MATCH :in_lead ORDER BY rowid DESC LIMIT :most);

-- name: found_entries
-- Entries by id, as far as they may be shown; ids is a JSON array. What is out of date is left out.
SELECT e.id, e.seq, e.agent, e.session, e.message_id, e.role, e.created_at, e.text
FROM search_entries e
WHERE e.id IN (SELECT value FROM json_each(:ids))
  AND (:agent IS NULL OR e.agent = :agent) AND (:whose IS NULL OR e.whose = :whose)
  AND e.created_at >= :after AND e.created_at < :before
  AND NOT EXISTS (SELECT 1 FROM search_again g WHERE g.seq = e.seq);

-- name: find_parts
-- The same by parts of identifiers and of texts without spaces, the newest first.
SELECT e.id, e.seq, e.agent, e.session, e.message_id, e.role, e.created_at, e.text
FROM search_parts JOIN search_entries e ON e.id = search_parts.rowid
WHERE search_parts MATCH :match
  AND (:agent IS NULL OR e.agent = :agent) AND (:whose IS NULL OR e.whose = :whose)
  AND e.created_at >= :after AND e.created_at < :before
  AND NOT EXISTS (SELECT 1 FROM json_each(:tokens) t
                  WHERE instr(' ' || e.scope || ' ', ' ' || t.value || ' ') = 0)
  AND NOT EXISTS (SELECT 1 FROM json_each(:patterns) p
                  WHERE e.parts NOT LIKE p.value ESCAPE '\')
  AND NOT EXISTS (SELECT 1 FROM search_again g WHERE g.seq = e.seq)
ORDER BY search_parts.rowid DESC LIMIT :limit;

-- name: find_texts
-- The same by looking at every text: for what is too short for any index, and for exact pieces.
-- `in_parts` looks only at identifiers and texts without spaces.
SELECT e.id, e.seq, e.agent, e.session, e.message_id, e.role, e.created_at, e.text
FROM search_entries e
WHERE (:agent IS NULL OR e.agent = :agent) AND (:whose IS NULL OR e.whose = :whose)
  AND e.created_at >= :after AND e.created_at < :before
  AND NOT EXISTS (SELECT 1 FROM json_each(:tokens) t
                  WHERE instr(' ' || e.scope || ' ', ' ' || t.value || ' ') = 0)
  AND NOT EXISTS (SELECT 1 FROM json_each(:patterns) p
                  WHERE CASE WHEN :in_parts THEN e.parts ELSE e.text END
                        NOT LIKE p.value ESCAPE '\')
  AND NOT EXISTS (SELECT 1 FROM search_again g WHERE g.seq = e.seq)
ORDER BY e.id DESC LIMIT :limit;

-- name: somebody_else_in
-- Whether entries of an agent are known to be of somebody else.
SELECT 1 AS found FROM search_entries
WHERE agent = :agent AND whose IS NOT NULL AND whose <> :whose LIMIT 1;
