-- Context blocks, and the prompts made of them.

-- name: read_block
-- The version of a block, or of one of its entries, that counts.
SELECT * FROM context_blocks
WHERE agent = :agent AND session = :session AND label = :label AND key = :key
ORDER BY version DESC LIMIT 1;

-- name: read_block_version
-- One version.
SELECT * FROM context_blocks
WHERE agent = :agent AND session = :session AND label = :label AND key = :key AND version = :version;

-- name: list_block_versions
-- The versions that are kept, the newest first.
SELECT * FROM context_blocks
WHERE agent = :agent AND session = :session AND label = :label AND key = :key
ORDER BY version DESC LIMIT :limit;

-- name: list_block_entries
-- The entries of a block as they count now, by key.
SELECT b.* FROM context_blocks b
WHERE b.agent = :agent AND b.session = :session AND b.label = :label AND b.key <> ''
  AND b.content IS NOT NULL
  AND b.version = (SELECT MAX(n.version) FROM context_blocks n
                   WHERE n.agent = b.agent AND n.session = b.session AND n.label = b.label
                     AND n.key = b.key)
ORDER BY b.key LIMIT :limit;

-- name: count_block_entries
-- How many entries a block has.
SELECT COUNT(*) AS entries FROM context_blocks b
WHERE b.agent = :agent AND b.session = :session AND b.label = :label AND b.key <> ''
  AND b.content IS NOT NULL
  AND b.version = (SELECT MAX(n.version) FROM context_blocks n
                   WHERE n.agent = b.agent AND n.session = b.session AND n.label = b.label
                     AND n.key = b.key);

-- name: write_block
-- One more version.
INSERT INTO context_blocks (agent, session, label, key, version, writer, source, principal, turn,
                            tool_call_id, restored, description, changed_at, content)
VALUES (:agent, :session, :label, :key, :version, :writer, :source, :principal, :turn,
        :tool_call_id, :restored, :description, :changed_at, :content);

-- name: trim_block
-- Old versions go, but not the first one of each person: an erasure has to find it.
DELETE FROM context_blocks
WHERE agent = :agent AND session = :session AND label = :label AND key = :key AND version <= :upto
  AND (principal IS NULL OR EXISTS (
      SELECT 1 FROM context_blocks f
      WHERE f.agent = context_blocks.agent AND f.session = context_blocks.session
        AND f.label = context_blocks.label AND f.key = context_blocks.key
        AND f.principal = context_blocks.principal AND f.version < context_blocks.version));

-- name: purge_block
-- Every version of a block and of its entries.
DELETE FROM context_blocks WHERE agent = :agent AND session = :session AND label = :label;

-- name: copy_blocks
-- A fork remembers what the agent remembers that it was made of.
INSERT INTO context_blocks (agent, session, label, key, version, writer, source, principal, turn,
                            tool_call_id, restored, description, changed_at, content)
SELECT :target, session, label, key, version, writer, source, principal, turn,
       tool_call_id, restored, description, changed_at, content
FROM context_blocks WHERE agent = :agent;

-- name: copy_prompts
-- The prompts as well, so that the past of a fork is what its model was given.
INSERT INTO prompts (agent, session, principal, fingerprint, shown, made_at, prompt)
SELECT :target, session, principal, fingerprint, shown, made_at, prompt
FROM prompts WHERE agent = :agent;

-- name: read_prompt
-- The prompt that was made for somebody.
SELECT fingerprint, shown, prompt FROM prompts
WHERE agent = :agent AND session = :session AND principal = :principal;

-- name: keep_prompt
-- Keep a prompt.
INSERT INTO prompts (agent, session, principal, fingerprint, shown, made_at, prompt)
VALUES (:agent, :session, :principal, :fingerprint, :shown, :made_at, :prompt)
ON CONFLICT (agent, session, principal) DO UPDATE
SET fingerprint = excluded.fingerprint, shown = excluded.shown, made_at = excluded.made_at,
    prompt = excluded.prompt;

-- name: forget_prompts
-- The next turns make new ones.
DELETE FROM prompts WHERE agent = :agent AND session = :session;
