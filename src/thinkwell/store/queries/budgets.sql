-- The ledger of budgets: what is spent and what is reserved, by scope.

-- name: spending_in
-- How some scopes stand; scopes is a JSON array.
SELECT * FROM spending WHERE scope IN (SELECT value FROM json_each(:scopes));

-- name: list_spending
-- Every sum that a budget counts, the last changed first; of one agent, those of its own.
SELECT * FROM spending WHERE agent = :agent OR :agent IS NULL ORDER BY changed_at DESC LIMIT :limit;

-- name: reserve_spending
-- A step may cost so much: no scope has room for it any more.
INSERT INTO spending (scope, agent, principal, reserved_nano_usd, reserved_tokens, changed_at)
VALUES (:scope, :agent, :principal, :nano_usd, :tokens, :now)
ON CONFLICT (scope) DO UPDATE SET
    reserved_nano_usd = spending.reserved_nano_usd + excluded.reserved_nano_usd,
    reserved_tokens = spending.reserved_tokens + excluded.reserved_tokens,
    changed_at = excluded.changed_at;

-- name: insert_reservation
-- Which turn reserved it.
INSERT INTO reservations (agent, turn, step, scopes, nano_usd, tokens, reserved_at)
VALUES (:agent, :turn, :step, :scopes, :nano_usd, :tokens, :now);

-- name: reservation_of
-- What a turn has reserved.
SELECT * FROM reservations WHERE agent = :agent AND turn = :turn;

-- name: reservations_of_agent
-- What the turns of an agent have reserved.
SELECT * FROM reservations WHERE agent = :agent LIMIT :limit;

-- name: orphaned_reservations
-- What turns have reserved that are gone or over; of one agent or, with NULL, of all.
SELECT * FROM reservations WHERE (agent = :agent OR :agent IS NULL) AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.agent = reservations.agent AND turns.id = reservations.turn
    AND turns.status IN ('accepted', 'running')) LIMIT :limit;

-- name: take_reservation
-- What a turn has reserved, to be settled in this transaction.
DELETE FROM reservations WHERE agent = :agent AND turn = :turn RETURNING *;

-- name: settle_spending
-- What was reserved has been spent, or less of it.
UPDATE spending SET reserved_nano_usd = reserved_nano_usd - :reserved_nano_usd,
                    reserved_tokens = reserved_tokens - :reserved_tokens,
                    nano_usd = nano_usd + :nano_usd, tokens = tokens + :tokens, changed_at = :now
WHERE scope IN (SELECT value FROM json_each(:scopes));

-- name: add_allowance
-- Somebody allows more than the budget says.
INSERT INTO spending (scope, agent, principal, added_nano_usd, added_tokens, changed_at)
VALUES (:scope, :agent, :principal, :nano_usd, :tokens, :now)
ON CONFLICT (scope) DO UPDATE SET
    added_nano_usd = spending.added_nano_usd + excluded.added_nano_usd,
    added_tokens = spending.added_tokens + excluded.added_tokens,
    changed_at = excluded.changed_at;

-- name: erase_spending_of
-- What a person has spent, in whatever agents.
DELETE FROM spending WHERE principal = :principal;

-- name: remove_spending
-- A piece of an agent's rows of spending.
DELETE FROM spending WHERE scope IN (SELECT scope FROM spending WHERE agent = :agent LIMIT :limit);

-- name: remove_reservations
-- A piece of an agent's rows of reservations.
DELETE FROM reservations WHERE agent = :agent AND turn IN (
    SELECT turn FROM reservations WHERE agent = :agent LIMIT :limit);

-- name: drop_old_spending
-- Turns and days that are long over.
DELETE FROM spending WHERE scope IN (
    SELECT scope FROM spending WHERE changed_at < :before AND reserved_nano_usd = 0
    AND reserved_tokens = 0 AND (scope LIKE '%|turn:%' OR scope LIKE '%|20__-__-__') LIMIT :limit);
