-- The ledger of tool executions.

-- name: claim_call
-- The tool is about to run; a second claim after a crash changes nothing, nor does one of a turn
-- that a clear has ended.
INSERT INTO tool_calls (agent, turn, call_id, tool_name, input, effect, idempotency_key, step, status,
                        claimed_at)
SELECT :agent, :turn, :call_id, :tool_name, :input, :effect, :idempotency_key, :step, 'pending',
       :claimed_at
WHERE EXISTS (SELECT 1 FROM turns WHERE agent = :agent AND id = :turn
                                    AND status IN ('accepted', 'running'))
ON CONFLICT (agent, turn, call_id) DO NOTHING;

-- name: settle_call
-- The call has its result; the first one stays.
UPDATE tool_calls SET status = 'settled', outcome = :outcome, output = :output, error = :error,
                      settled_at = :settled_at
WHERE agent = :agent AND turn = :turn AND call_id = :call_id AND status = 'pending';

-- name: copy_call
-- A settled call of the turn that this one was forked from.
INSERT INTO tool_calls (agent, turn, call_id, tool_name, input, effect, idempotency_key, step, status,
                        outcome, output, error, claimed_at, settled_at)
VALUES (:agent, :turn, :call_id, :tool_name, :input, :effect, :idempotency_key, :step, 'settled',
        :outcome, :output, :error, :now, :now);

-- name: drop_tool_calls
-- Every call of one agent (clear).
DELETE FROM tool_calls WHERE agent = :agent;

-- name: open_calls
-- Calls of one tool whose outcome is unknown, or came when nobody waited for it any more.
SELECT * FROM tool_calls
WHERE agent = :agent AND tool_name = :tool AND (settled_at IS NULL OR outcome = 'late')
ORDER BY claimed_at, call_id;

-- name: open_call
-- The call with that id or key whose outcome is unknown.
SELECT * FROM tool_calls
WHERE agent = :agent AND (call_id = :call_id OR idempotency_key = :call_id) AND settled_at IS NULL
ORDER BY claimed_at DESC LIMIT 1;

-- name: close_call
-- Somebody knows what came of an open call.
UPDATE tool_calls SET status = 'settled', outcome = :outcome, output = :output, error = :error,
                      settled_at = :settled_at
WHERE agent = :agent AND turn = :turn AND call_id = :call_id
  AND (settled_at IS NULL OR outcome = 'late');

-- name: resolve_call
-- The same, by whoever knows only the call's id.
UPDATE tool_calls SET status = 'settled', outcome = :outcome, output = :output, error = :error,
                      settled_at = :settled_at
WHERE agent = :agent AND call_id = :call_id AND settled_at IS NULL;

-- name: calls_of_turn
-- All calls of one turn.
SELECT * FROM tool_calls WHERE agent = :agent AND turn = :turn ORDER BY claimed_at, call_id;

-- name: call_times
-- When the settled calls of some turns began and ended.
SELECT call_id, claimed_at, settled_at FROM tool_calls
WHERE agent = :agent AND turn IN (SELECT value FROM json_each(:turns)) AND settled_at IS NOT NULL;

-- name: drop_old_calls
-- Calls of an ended turn past their age. An open call and one whose result came late stay as they are;
-- of a `once` tool the claim stays (`trim_old_claims`), as long as its conversation.
DELETE FROM tool_calls
WHERE agent = :agent AND turn = :turn AND settled_at < :before
  AND effect <> 'once' AND outcome <> 'late';

-- name: trim_old_claims
-- What went into a settled `once` call and came out of it: the message has that.
UPDATE tool_calls SET input = NULL, output = NULL, error = NULL
WHERE agent = :agent AND turn = :turn AND settled_at < :before
  AND effect = 'once' AND outcome <> 'late'
  AND (input IS NOT NULL OR output IS NOT NULL OR error IS NOT NULL);
