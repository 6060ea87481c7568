-- Turn rows: one durable record per admitted execution.

-- name: insert_turn
-- Accept a turn.
INSERT INTO turns (agent, id, trigger, status, generation, continuation, input, options, body,
                   client_tools, idempotency_key, metadata, message_id, message_ids, principal,
                   created_at, attempt, incident, journal_start, started_at, code)
VALUES (:agent, :id, :trigger, :status, :generation, :continuation, :input, :options, :body,
        :client_tools, :idempotency_key, :metadata, :message_id, :message_ids, :principal,
        :created_at, :attempt, :incident, :journal_start, :started_at, :code);

-- name: turn_by_id
-- One turn by its request id.
SELECT * FROM turns WHERE agent = :agent AND id = :id;

-- name: turn_by_key
-- One turn by its idempotency key.
SELECT * FROM turns WHERE agent = :agent AND idempotency_key = :key;

-- name: turn_before
-- The turn accepted last before this one that asked a model.
SELECT * FROM turns
WHERE agent = :agent AND steps > 0
  AND seq < (SELECT seq FROM turns WHERE agent = :agent AND id = :id)
ORDER BY seq DESC LIMIT 1;

-- name: newest_turn
-- The turn accepted last.
SELECT * FROM turns WHERE agent = :agent ORDER BY seq DESC LIMIT 1;

-- name: newest_client_tools
-- What the client declared with the turn accepted last.
SELECT generation, trigger, client_tools FROM turns
WHERE agent = :agent ORDER BY seq DESC LIMIT 1;

-- name: unsettled_turns
-- Turns that have not ended, in acceptance order.
SELECT * FROM turns WHERE agent = :agent AND status IN ('accepted', 'running') ORDER BY seq;

-- name: unsettled_ids
-- Turns of earlier generations that have not ended.
SELECT id FROM turns
WHERE agent = :agent AND status IN ('accepted', 'running') AND generation < :before ORDER BY seq;

-- name: turns_owing_hooks
-- Settled turns whose response hooks have not run.
SELECT * FROM turns WHERE agent = :agent AND hooks_owed > 0 ORDER BY seq;

-- name: agents_with_work
-- Agents that must be awake after a start.
SELECT DISTINCT agent FROM turns WHERE status IN ('accepted', 'running');

-- name: agents_owing_hooks
-- Agents with a settled turn whose response hooks have not run.
SELECT DISTINCT agent FROM turns WHERE hooks_owed > 0;

-- name: agent_with_work
-- Whether one agent must be awake after a start.
SELECT 1 FROM turns WHERE agent = :agent AND (status IN ('accepted', 'running') OR hooks_owed > 0)
LIMIT 1;

-- name: start_attempt
-- One more attempt of a turn begins.
UPDATE turns SET status = 'running', attempt = :attempt, incident = :incident,
                 message_id = :message_id, options = :options,
                 journal_start = :journal_start, started_at = :started_at
WHERE agent = :agent AND id = :id AND status IN ('accepted', 'running');

-- name: mark_places
-- Where a turn is about to go, and what else is remembered of its attempts.
UPDATE turns SET incident = :incident WHERE agent = :agent AND id = :id AND status = 'running';

-- name: settle_turn
-- The one way a turn ends.
UPDATE turns SET status = :status, stop_reason = :stop_reason, error = :error,
                 client_error = :client_error, usage = :usage, spent = :spent,
                 steps = :steps, hooks_owed = :hooks_owed, output = :output, settled_at = :settled_at
WHERE agent = :agent AND id = :id AND status IN ('accepted', :begun);

-- name: request_cancel
-- Somebody wants the turn to stop.
UPDATE turns SET cancel_requested = :reason
WHERE agent = :agent AND id = :id AND status IN ('accepted', 'running') AND cancel_requested IS NULL;

-- name: turns_to_stop
-- Turns that run or wait: one, those of one agent, or all.
SELECT agent, id FROM turns
WHERE status IN ('accepted', 'running') AND agent = COALESCE(:agent, agent)
      AND id = COALESCE(:id, id)
ORDER BY seq;

-- name: request_cancels
-- Somebody wants all of these to stop.
UPDATE turns SET cancel_requested = :reason
WHERE status IN ('accepted', 'running') AND cancel_requested IS NULL
      AND agent = COALESCE(:agent, agent) AND id = COALESCE(:id, id);

-- name: answering_turn
-- The newest turn that wrote an answer.
SELECT * FROM turns WHERE agent = :agent AND message_id = :message_id ORDER BY seq DESC LIMIT 1;

-- name: turns_of_message
-- Every turn that wrote an answer, the first one first.
SELECT * FROM turns WHERE agent = :agent AND message_id = :message_id
                          AND status NOT IN ('accepted', 'skipped') ORDER BY seq;

-- name: owe_continuation
-- Go on with this answer once all its open calls have results.
UPDATE turns SET continuation_owed = 1
WHERE agent = :agent AND seq = (SELECT MAX(seq) FROM turns
                                WHERE agent = :agent AND message_id = :message_id);

-- name: forgive_continuation
-- It has been started, or something else came in between.
UPDATE turns SET continuation_owed = 0 WHERE agent = :agent AND continuation_owed = 1;

-- name: set_hooks_owed
-- How often the response hooks may still be tried.
UPDATE turns SET hooks_owed = :owed WHERE agent = :agent AND id = :id;

-- name: erase_turns
-- A clear: ids, times, status and usage of ended turns stay, what was said and done in them goes.
UPDATE turns SET input = NULL, body = NULL, client_tools = NULL, metadata = NULL, error = NULL,
                 client_error = NULL, cancel_requested = NULL, output = NULL,
                 options = json_remove(options, '$.inputDigest', '$.chosen'),
                 incident = json_remove(incident, '$.stash')
WHERE agent = :agent AND status NOT IN ('accepted', 'running');

-- name: erase_turn
-- The same for one turn that the clear came too early for.
UPDATE turns SET input = NULL, body = NULL, client_tools = NULL, metadata = NULL, error = NULL,
                 client_error = NULL, cancel_requested = NULL, output = NULL,
                 options = json_remove(options, '$.inputDigest', '$.chosen'),
                 incident = json_remove(incident, '$.stash')
WHERE agent = :agent AND id = :id;

-- name: turns_from
-- The next turns in the order of acceptance, for their clean-up. One is spent when nothing needs the
-- whole of it: it has ended and owes nothing, its journal is gone, it is not the agent's newest one
-- (which says what the client can do), no call of it is open, and none of its answer waits for
-- somebody: a turn that ended with a question is answered by a later one for the same message.
SELECT t.seq, t.agent, t.id, t.created_at, t.settled_at,
       t.hooks_owed = 0 AND t.continuation_owed = 0
       AND NOT EXISTS (SELECT 1 FROM packed_journals p WHERE p.agent = t.agent AND p.turn = t.id)
       AND EXISTS (SELECT 1 FROM turns n WHERE n.agent = t.agent AND n.seq > t.seq)
       AND NOT EXISTS (SELECT 1 FROM tool_calls c WHERE c.agent = t.agent AND c.turn = t.id
                       AND (c.settled_at IS NULL OR c.outcome = 'late'))
       AND (COALESCE(t.stop_reason, '') NOT IN ('approval', 'client_tool')
            OR EXISTS (SELECT 1 FROM turns n WHERE n.agent = t.agent
                       AND n.message_id = t.message_id AND n.seq > t.seq)) AS spent
FROM turns t WHERE t.seq > :after ORDER BY t.seq LIMIT :limit;

-- name: trim_turn
-- A spent turn past its age: who asked, its messages, its times and its usage stay. From here on
-- `message_ids` names the messages it brought, not those its client spoke of.
UPDATE turns SET message_ids = CASE WHEN input IS NULL THEN NULL ELSE
                     (SELECT json_group_array(json_extract(value, '$.id')) FROM json_each(input)) END,
                 principal = CASE WHEN principal IS NULL THEN NULL
                                  ELSE json_object('id', json_extract(principal, '$.id')) END,
                 input = NULL, options = NULL, body = NULL, client_tools = NULL,
                 idempotency_key = NULL, metadata = NULL, incident = NULL, cancel_requested = NULL,
                 error = NULL, client_error = NULL, output = NULL
WHERE seq = :seq AND options IS NOT NULL;

-- name: drop_trimmed_turn
-- A trimmed turn that neither a message nor a call of the ledger refers to. The sessions are named so
-- that messages are found by their index.
DELETE FROM turns
WHERE seq = :seq AND options IS NULL
  AND NOT EXISTS (SELECT 1 FROM tool_calls c WHERE c.agent = turns.agent AND c.turn = turns.id)
  AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.agent = turns.agent
                  AND m.session IN (SELECT s.id FROM sessions s WHERE s.agent = turns.agent)
                  AND (m.id = turns.message_id
                       OR m.id IN (SELECT value FROM json_each(turns.message_ids))));
