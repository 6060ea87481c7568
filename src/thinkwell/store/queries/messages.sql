-- The message tree. A child is newer (seq) than its parent: walks are guarded by that, so that even
-- a damaged tree with a cycle cannot make one endless. Content never passes through a recursion or a
-- sort: walks give ids and sizes, content is fetched afterwards.

-- name: message_row
-- Place and sizes of one message.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages WHERE agent = :agent AND session = :session AND id = :id;

-- name: message_rows
-- Place and sizes of several messages; ids is a JSON array. The plus keeps SQLite from walking the
-- whole session in the order of seq instead of looking the ids up.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids))
ORDER BY +seq;

-- name: stored_ids
-- Which of several ids are stored; ids is a JSON array.
SELECT id
FROM messages
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: message_beside
-- Whether the session holds more messages than so many: some are not on the path then.
SELECT 1 FROM messages WHERE agent = :agent AND session = :session LIMIT 1 OFFSET :count;

-- name: latest_leaf
-- The newest message: nothing can hang under it yet.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages WHERE agent = :agent AND session = :session ORDER BY seq DESC LIMIT 1;

-- name: head_row
-- Where the conversation stands: the pinned leaf, else the latest one.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages
WHERE agent = :agent AND session = :session AND id = COALESCE(
    (SELECT active_leaf FROM sessions WHERE agent = :agent AND id = :session),
    (SELECT id FROM messages WHERE agent = :agent AND session = :session
     ORDER BY seq DESC LIMIT 1));

-- name: path_rows
-- The whole path of a leaf, leaf first.
WITH RECURSIVE path
    (seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version) AS (
    SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
    FROM messages WHERE agent = :agent AND session = :session AND id = :leaf
    UNION ALL
    SELECT m.seq, m.id, m.parent_id, m.role, m.depth, m.bytes, m.tokens, m.cum_bytes, m.cum_tokens,
           m.version
    FROM path JOIN messages m
      ON m.agent = :agent AND m.session = :session AND m.id = path.parent_id AND m.seq < path.seq
)
SELECT * FROM path ORDER BY seq DESC;

-- name: recent_rows
-- The end of a leaf's path, leaf first: min_recent messages, then as many as fit into max_bytes.
WITH RECURSIVE path
    (seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version, place, total)
    AS (
    SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version, 1,
           cum_bytes
    FROM messages WHERE agent = :agent AND session = :session AND id = :leaf
    UNION ALL
    SELECT m.seq, m.id, m.parent_id, m.role, m.depth, m.bytes, m.tokens, m.cum_bytes, m.cum_tokens,
           m.version, path.place + 1, path.total
    FROM path JOIN messages m
      ON m.agent = :agent AND m.session = :session AND m.id = path.parent_id AND m.seq < path.seq
    WHERE path.place < :min_recent OR path.total - m.cum_bytes + m.bytes <= :max_bytes
)
SELECT * FROM path ORDER BY seq DESC;

-- name: message_contents
-- The content of several messages; ids is a JSON array.
SELECT seq, id, version, content FROM messages
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: child_rows
-- The children of a message, oldest first.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages WHERE agent = :agent AND session = :session AND parent_id = :id ORDER BY seq;

-- name: root_rows
-- The messages without a parent, oldest first.
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages WHERE agent = :agent AND session = :session AND parent_id IS NULL ORDER BY seq;

-- name: first_child
-- Whether anything hangs under a message.
SELECT id FROM messages
WHERE agent = :agent AND session = :session AND parent_id = :id LIMIT 1;

-- name: newest_below
-- The newest of a message and all that hangs below it: nothing can hang under it.
WITH RECURSIVE below (seq, id) AS (
    SELECT seq, id FROM messages WHERE agent = :agent AND session = :session AND id = :id
    UNION ALL
    SELECT c.seq, c.id FROM below JOIN messages c
      ON c.agent = :agent AND c.session = :session AND c.parent_id = below.id AND c.seq > below.seq
)
SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
FROM messages WHERE seq = (SELECT MAX(seq) FROM below);

-- name: subtree_rows
-- A message and everything below it, oldest first.
WITH RECURSIVE below
    (seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version) AS (
    SELECT seq, id, parent_id, role, depth, bytes, tokens, cum_bytes, cum_tokens, version
    FROM messages WHERE agent = :agent AND session = :session AND id = :id
    UNION ALL
    SELECT c.seq, c.id, c.parent_id, c.role, c.depth, c.bytes, c.tokens, c.cum_bytes, c.cum_tokens,
           c.version
    FROM below JOIN messages c
      ON c.agent = :agent AND c.session = :session AND c.parent_id = below.id AND c.seq > below.seq
)
SELECT * FROM below ORDER BY seq;

-- name: insert_message
-- Add a message at a place the caller worked out.
INSERT INTO messages (agent, session, id, parent_id, role, depth, bytes, tokens, cum_bytes,
                      cum_tokens, version, created_at, content)
VALUES (:agent, :session, :id, :parent_id, :role, :depth, :bytes, :tokens, :cum_bytes,
        :cum_tokens, 1, :created_at, :content)
ON CONFLICT (agent, session, id) DO NOTHING
RETURNING seq;

-- name: keep_version
-- What a message says now, before it is replaced: journals may refer to it.
INSERT INTO message_versions (agent, session, id, version, replaced_at, content)
SELECT agent, session, id, version, :replaced_at, content
FROM messages WHERE agent = :agent AND session = :session AND id = :id;

-- name: message_versions
-- Replaced contents of several messages; ids is a JSON array.
SELECT id, version, content FROM message_versions
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: delete_versions
-- Replaced contents of deleted messages; ids is a JSON array.
DELETE FROM message_versions
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: old_versions
-- Replaced contents past their retention, a bounded piece.
SELECT agent, session, id, version FROM message_versions
WHERE replaced_at < :before ORDER BY replaced_at LIMIT :limit;

-- name: drop_version
-- One replaced content.
DELETE FROM message_versions
WHERE agent = :agent AND session = :session AND id = :id AND version = :version;

-- name: clear_versions
-- All replaced contents of a session.
DELETE FROM message_versions WHERE agent = :agent AND session = :session;

-- name: replace_message
-- New content for a message; its place stays.
UPDATE messages
SET role = :role, content = :content, version = version + 1,
    cum_bytes = cum_bytes + :bytes - bytes, cum_tokens = cum_tokens + :tokens - tokens,
    bytes = :bytes, tokens = :tokens
WHERE agent = :agent AND session = :session AND id = :id;

-- name: shift_descendants
-- A message grew or shrank: the sums of everything below it follow.
WITH RECURSIVE below (seq, id) AS (
    SELECT seq, id FROM messages WHERE agent = :agent AND session = :session AND id = :id
    UNION ALL
    SELECT c.seq, c.id FROM below JOIN messages c
      ON c.agent = :agent AND c.session = :session AND c.parent_id = below.id AND c.seq > below.seq
)
UPDATE messages
SET cum_bytes = cum_bytes + :bytes, cum_tokens = cum_tokens + :tokens
WHERE seq IN (SELECT seq FROM below) AND id <> :id;

-- name: shift_below_deleted
-- Before a connected group of messages (ids, a JSON array, with its top) goes: everything below it
-- loses the depth and the sizes of those group members it hangs under.
WITH RECURSIVE below (seq, id, lost_rows, lost_bytes, lost_tokens) AS (
    SELECT seq, id, 1, bytes, tokens
    FROM messages WHERE agent = :agent AND session = :session AND id = :top
    UNION ALL
    SELECT c.seq, c.id,
           below.lost_rows + CASE WHEN gone.value IS NULL THEN 0 ELSE 1 END,
           below.lost_bytes + CASE WHEN gone.value IS NULL THEN 0 ELSE c.bytes END,
           below.lost_tokens + CASE WHEN gone.value IS NULL THEN 0 ELSE c.tokens END
    FROM below JOIN messages c
      ON c.agent = :agent AND c.session = :session AND c.parent_id = below.id AND c.seq > below.seq
    LEFT JOIN (SELECT value FROM json_each(:ids)) gone ON gone.value = c.id
)
UPDATE messages
SET depth = messages.depth - below.lost_rows,
    cum_bytes = messages.cum_bytes - below.lost_bytes,
    cum_tokens = messages.cum_tokens - below.lost_tokens
FROM below WHERE messages.seq = below.seq;

-- name: relink_children
-- Children of messages that go hang under another one from now on; ids is a JSON array.
UPDATE messages SET parent_id = :parent_id
WHERE agent = :agent AND session = :session
  AND parent_id IN (SELECT value FROM json_each(:ids));

-- name: delete_messages
-- Remove messages; ids is a JSON array.
DELETE FROM messages
WHERE agent = :agent AND session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: clear_messages
-- Remove every message of a session.
DELETE FROM messages WHERE agent = :agent AND session = :session;
