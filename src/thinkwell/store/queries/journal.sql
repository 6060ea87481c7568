-- The live journal (append-only, `pos` is its only key) and the packed streams of ended turns.

-- name: append_journal
-- Several chunks, or one event, of a running turn.
INSERT INTO journal (agent, turn, seq_from, seq_to, kind, body)
VALUES (:agent, :turn, :seq_from, :seq_to, :kind, :body);

-- name: mark_journal
-- An event whose position the caller needs.
INSERT INTO journal (agent, turn, seq_from, seq_to, kind, body)
VALUES (:agent, :turn, :seq, :seq, :kind, :body) RETURNING pos;

-- name: read_journal
-- The live journal of one turn, scanned from where the turn began.
SELECT kind, seq_from, body FROM journal WHERE pos >= :start AND agent = :agent AND turn = :turn ORDER BY pos;

-- name: journal_places
-- Where the rows of each turn stand in a slice of the live journal.
SELECT agent, turn, GROUP_CONCAT(pos) AS places FROM journal
WHERE pos >= :start AND pos < :stop GROUP BY agent, turn;

-- name: journal_rows_at
-- Rows of one turn whose places are known. A place may be somebody else's by now.
SELECT kind, seq_from, body FROM journal
WHERE pos IN (SELECT value FROM json_each(:places)) AND agent = :agent AND turn = :turn ORDER BY pos;

-- name: needed_journal
-- The first live row that some turn may need for recovery.
SELECT COALESCE((SELECT MIN(journal_start) FROM turns WHERE status IN ('accepted', 'running')),
                (SELECT MAX(pos) + 1 FROM journal)) AS pos;

-- name: trim_journal
-- Drop live rows nobody needs any more, a bounded piece at a time.
DELETE FROM journal WHERE pos < :needed AND pos < (SELECT MIN(pos) + 500 FROM journal);

-- name: pack_journal
-- The whole journal of an ended turn, in the current format.
INSERT INTO packed_journals (agent, turn, settled_at, chunks, format, stream, events)
VALUES (:agent, :turn, :settled_at, '', :format, :stream, :events)
ON CONFLICT (agent, turn) DO UPDATE SET
    settled_at = excluded.settled_at, chunks = excluded.chunks, format = excluded.format,
    stream = excluded.stream, events = excluded.events;

-- name: packed_journal
-- Chunks and events of an ended turn.
SELECT format, chunks, stream, events FROM packed_journals WHERE agent = :agent AND turn = :turn;

-- name: drop_old_packed_journals
-- Streams past their retention, the oldest first, a bounded piece at a time.
DELETE FROM packed_journals WHERE (agent, turn) IN (
    SELECT agent, turn FROM packed_journals WHERE settled_at < :before
    ORDER BY settled_at LIMIT :limit);

-- name: journal_ends
-- The oldest and the newest live row.
SELECT (SELECT MIN(pos) FROM journal) AS first, (SELECT MAX(pos) FROM journal) AS last;

-- name: erase_journal
-- Live rows of one agent's ended turns, a bounded piece at a time (clear).
DELETE FROM journal
WHERE pos >= :start AND pos < :stop AND agent = :agent
  AND turn NOT IN (SELECT id FROM turns WHERE agent = :agent AND status IN ('accepted', 'running'));

-- name: drop_packed_journals
-- Every stream of one agent (clear).
DELETE FROM packed_journals WHERE agent = :agent;

-- name: write_probe
-- Proves that the store takes a row of some size; `erase_probe` follows in the same transaction.
INSERT INTO journal (agent, turn, seq_from, seq_to, kind, body)
VALUES ('', '', 0, 0, 'probe', :body);

-- name: erase_probe
-- Takes the proof away again.
DELETE FROM journal WHERE pos = (SELECT MAX(pos) FROM journal) AND kind = 'probe';

-- name: keep_blob
-- A text that journals refer to, once.
INSERT INTO blobs (hash, body) VALUES (:hash, :body) ON CONFLICT (hash) DO NOTHING;

-- name: use_blob
-- An agent refers to it.
INSERT INTO blob_uses (agent, hash, used_at) VALUES (:agent, :hash, :used_at)
ON CONFLICT (agent, hash) DO UPDATE SET used_at = excluded.used_at;

-- name: blob_by_hash
-- A text by its hash.
SELECT body FROM blobs WHERE hash = :hash;

-- name: drop_own_blobs
-- Texts that only this agent refers to (clear); `drop_blob_uses` follows.
DELETE FROM blobs WHERE hash IN (
    SELECT u.hash FROM blob_uses u
    WHERE u.agent = :agent
      AND NOT EXISTS (SELECT 1 FROM blob_uses o WHERE o.hash = u.hash AND o.agent <> :agent));

-- name: old_blob_uses
-- Uses past their retention, a bounded piece.
SELECT agent, hash FROM blob_uses WHERE used_at < :before ORDER BY used_at LIMIT :limit;

-- name: drop_blob_use
-- One agent's use of a text.
DELETE FROM blob_uses WHERE agent = :agent AND hash = :hash;

-- name: drop_unused_blob
-- A text, if nobody refers to it any more.
DELETE FROM blobs
WHERE hash = :hash AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE hash = :hash);

-- name: drop_blob_uses
-- What this agent refers to (clear).
DELETE FROM blob_uses WHERE agent = :agent;
