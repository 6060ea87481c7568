-- Values that an agent and its features keep.

-- name: get_stored
-- The value under a key.
SELECT value FROM storage WHERE agent = :agent AND owner = :owner AND key = :key;

-- name: set_stored
-- Keep a value under a key.
INSERT INTO storage (agent, owner, key, value) VALUES (:agent, :owner, :key, :value)
ON CONFLICT (agent, owner, key) DO UPDATE SET value = excluded.value;

-- name: delete_stored
-- Forget a key.
DELETE FROM storage WHERE agent = :agent AND owner = :owner AND key = :key;

-- name: list_stored
-- Keys with one beginning, a page at a time.
SELECT key, value FROM storage
WHERE agent = :agent AND owner = :owner AND key >= :prefix AND key < :stop AND key > :after
ORDER BY key LIMIT :limit;
