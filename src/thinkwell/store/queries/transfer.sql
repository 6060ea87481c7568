-- Moving an agent to another database. Whole rows are read and written by queries that `tables.py`
-- makes from the schema (`export_turns`, `import_turns`, …).

-- name: blobs_of_agent
-- The texts an agent refers to.
SELECT b.hash, b.body FROM blobs b JOIN blob_uses u ON u.hash = b.hash
WHERE u.agent = :agent ORDER BY b.hash;

-- name: begin_import
-- An agent is about to come in. Until it is whole it counts as deleted: nobody owns or finds it, and
-- what a crash leaves of it is removed at the next start.
INSERT INTO agents (id, class, name, epoch, generation, state, created_at, deleted_at)
VALUES (:id, :class, :name, 0, 0, NULL, :created_at, :now);

-- name: end_import
-- It is whole. Its epoch is above that of every agent deleted here.
UPDATE agents SET deleted_at = NULL, generation = :generation, state = :state,
                  epoch = COALESCE((SELECT highest FROM removed_epochs), 0) + :epoch
WHERE id = :id AND deleted_at IS NOT NULL;
