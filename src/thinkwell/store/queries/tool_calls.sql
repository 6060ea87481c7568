-- The ledger of tool executions.

-- name: claim_call
-- The tool is about to run; a second claim after a crash changes nothing.
INSERT INTO tool_calls (agent, turn, call_id, tool_name, input, effect, idempotency_key, step, status,
                        claimed_at)
VALUES (:agent, :turn, :call_id, :tool_name, :input, :effect, :idempotency_key, :step, 'pending',
        :claimed_at)
ON CONFLICT (agent, turn, call_id) DO NOTHING;

-- name: settle_call
-- The call has its result; the first one stays.
UPDATE tool_calls SET status = 'settled', outcome = :outcome, output = :output, error = :error,
                      settled_at = :settled_at
WHERE agent = :agent AND turn = :turn AND call_id = :call_id AND status = 'pending';

-- name: calls_of_turn
-- All calls of one turn.
SELECT * FROM tool_calls WHERE agent = :agent AND turn = :turn ORDER BY claimed_at, call_id;

-- name: call_times
-- When the settled calls of some turns began and ended.
SELECT call_id, claimed_at, settled_at FROM tool_calls
WHERE agent = :agent AND turn IN (SELECT value FROM json_each(:turns)) AND settled_at IS NOT NULL;
