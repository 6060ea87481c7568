-- Erasing a person. Principals are stored as JSON with an `id`. None of these is hot: they run when
-- somebody is erased or exported, away from the event loop where they look at everything.

-- name: principal_ids
-- Everybody that any row names.
SELECT json_extract(principal, '$.id') AS id FROM turns WHERE principal IS NOT NULL
UNION SELECT json_extract(principal, '$.id') FROM jobs WHERE principal IS NOT NULL
UNION SELECT json_extract(principal, '$.id') FROM decisions WHERE principal IS NOT NULL
UNION SELECT json_extract(asker, '$.id') FROM approvals WHERE asker IS NOT NULL
UNION SELECT principal FROM approval_rules WHERE principal IS NOT NULL
UNION SELECT json_extract(made_by, '$.id') FROM approval_rules WHERE made_by IS NOT NULL
UNION SELECT value FROM approvers, json_each(approvers.ids)
UNION SELECT principal FROM context_blocks WHERE principal IS NOT NULL
UNION SELECT substr(agent, 12) FROM context_blocks WHERE substr(agent, 1, 11) = '/principal/'
UNION SELECT principal FROM prompts WHERE principal <> ''
UNION SELECT principal FROM spending WHERE principal IS NOT NULL;

-- name: agents_of_principal
-- The agents with rows of a person.
SELECT found.agent
FROM (SELECT agent FROM turns WHERE json_extract(principal, '$.id') = :principal
      UNION SELECT agent FROM jobs WHERE json_extract(principal, '$.id') = :principal
      UNION SELECT agent FROM decisions WHERE json_extract(principal, '$.id') = :principal
      UNION SELECT agent FROM approvals WHERE json_extract(asker, '$.id') = :principal
      UNION SELECT agent FROM approval_rules
            WHERE principal = :principal OR json_extract(made_by, '$.id') = :principal
      UNION SELECT agent FROM context_blocks
            WHERE principal = :principal AND substr(agent, 1, 1) <> '/'
      UNION SELECT agent FROM prompts WHERE principal = :principal
      UNION SELECT agent FROM spending WHERE principal = :principal AND agent IS NOT NULL
      UNION SELECT agent FROM approvers, json_each(approvers.ids) WHERE value = :principal) found
ORDER BY found.agent;

-- name: agent_of_one
-- Whether an agent is a person's alone: they have asked it something, and neither a turn nor a job
-- is somebody else's. One without a principal may be anybody's, except for a task that the class
-- declares or the end of a question: these are nobody's.
SELECT EXISTS (SELECT 1 FROM turns WHERE agent = :agent
               AND json_extract(principal, '$.id') = :principal)
       AND NOT EXISTS (SELECT 1 FROM turns WHERE agent = :agent
                       AND (principal IS NULL OR json_extract(principal, '$.id') <> :principal))
       AND NOT EXISTS (SELECT 1 FROM jobs WHERE agent = :agent
                       AND (json_extract(principal, '$.id') <> :principal
                            OR (principal IS NULL AND kind IS NOT 'task' AND name <> :expire)))
       AS alone;

-- name: turns_of_principal
-- A piece of a person's turns in one agent.
SELECT seq, id, continuation, options, message_id, message_ids, input FROM turns
WHERE agent = :agent AND json_extract(principal, '$.id') = :principal ORDER BY seq LIMIT :limit;

-- name: unsettled_of_principal
-- A person's turns in one agent that have not ended.
SELECT id FROM turns
WHERE agent = :agent AND status IN ('accepted', 'running')
  AND json_extract(principal, '$.id') = :principal ORDER BY seq;

-- name: running_jobs_of_principal
-- A person's jobs in one agent that run.
SELECT id FROM jobs
WHERE agent = :agent AND status = 'running' AND json_extract(principal, '$.id') = :principal;

-- name: erase_turn_row
-- A turn, whatever its state.
DELETE FROM turns WHERE seq = :seq;

-- name: erase_calls
-- The ledger of a turn, and of turns that went on with its answer, whoever asked for those.
DELETE FROM tool_calls WHERE agent = :agent AND (turn = :turn OR turn IN (
    SELECT id FROM turns WHERE agent = :agent AND message_id = :answer));

-- name: erase_turns_of_answer
-- The turns that went on with an answer that goes.
DELETE FROM turns WHERE agent = :agent AND message_id = :answer;

-- name: erase_inputs
-- Messages that go, where a turn that took another's place holds a copy; ids is a JSON array.
UPDATE turns SET input = (SELECT json_group_array(json(i.value)) FROM json_each(turns.input) i
                          WHERE json_extract(i.value, '$.id') NOT IN (SELECT value FROM json_each(:ids)))
WHERE agent = :agent AND EXISTS (
    SELECT 1 FROM json_each(turns.input) i
    WHERE json_extract(i.value, '$.id') IN (SELECT value FROM json_each(:ids)));

-- name: erase_live_journal
-- What is in the live journal of some turns; ids is a JSON array. It has no index by turn, but it is
-- never long: what ended turns leave there is trimmed all the time.
DELETE FROM journal WHERE agent = :agent AND turn IN (SELECT value FROM json_each(:ids));

-- name: erase_decisions_about
-- What was decided about calls of a turn or a message.
DELETE FROM decisions WHERE agent = :agent AND (turn = :turn OR message_id = :message_id);

-- name: erase_approvers_of
-- Who may decide about the calls of a message.
DELETE FROM approvers WHERE agent = :agent AND message_id = :message_id;

-- name: erase_approvals_of
-- What was asked about the calls of a message.
DELETE FROM approvals WHERE agent = :agent AND message_id = :message_id;

-- name: erase_approvals_by
-- What was asked on behalf of a person.
DELETE FROM approvals WHERE agent = :agent AND json_extract(asker, '$.id') = :principal;

-- name: erase_rules_for
-- Rules that allow a person's calls.
DELETE FROM approval_rules WHERE agent = :agent AND principal = :principal;

-- name: erase_rules_by
-- Rules that a person made as a client: they hold only as long as their maker may decide.
DELETE FROM approval_rules
WHERE agent = :agent AND by_client = 1 AND json_extract(made_by, '$.id') = :principal;

-- name: unname_rule_maker
-- Rules that the app made in a person's name hold, and do not say whose name it was.
UPDATE approval_rules SET made_by = NULL
WHERE agent = :agent AND json_extract(made_by, '$.id') = :principal;

-- name: erase_decisions_by
-- What a person decided.
DELETE FROM decisions WHERE agent = :agent AND json_extract(principal, '$.id') = :principal;

-- name: erase_jobs_of
-- Jobs that work for a person.
DELETE FROM jobs WHERE agent = :agent AND json_extract(principal, '$.id') = :principal;

-- name: unname_approver
-- A person may no longer decide; whoever else is named still may.
UPDATE approvers
SET ids = (SELECT json_group_array(value) FROM json_each(approvers.ids) WHERE value <> :principal)
WHERE agent = :agent AND EXISTS (SELECT 1 FROM json_each(approvers.ids) WHERE value = :principal);

-- name: calls_of_principal
-- Ledger rows of a person's turns.
SELECT c.* FROM tool_calls c JOIN turns t ON t.agent = c.agent AND t.id = c.turn
WHERE c.agent = :agent AND json_extract(t.principal, '$.id') = :principal;

-- name: whole_turns_of_principal
-- A person's turns in one agent.
SELECT * FROM turns
WHERE agent = :agent AND json_extract(principal, '$.id') = :principal ORDER BY seq;

-- name: decisions_of_principal
-- What a person decided, and what was decided about their turns.
SELECT * FROM decisions
WHERE agent = :agent AND (json_extract(principal, '$.id') = :principal OR turn IN (
    SELECT id FROM turns WHERE agent = :agent AND json_extract(principal, '$.id') = :principal))
ORDER BY seq;

-- name: jobs_of_principal
-- Jobs that work for a person.
SELECT * FROM jobs
WHERE agent = :agent AND json_extract(principal, '$.id') = :principal ORDER BY seq;

-- name: approvals_of_principal
-- Calls that a person may decide about.
SELECT * FROM approvers
WHERE agent = :agent AND EXISTS (SELECT 1 FROM json_each(approvers.ids) WHERE value = :principal);

-- name: journals_of_principal
-- Packed journals of a person's turns.
SELECT p.* FROM packed_journals p JOIN turns t ON t.agent = p.agent AND t.id = p.turn
WHERE p.agent = :agent AND json_extract(t.principal, '$.id') = :principal;

-- name: messages_of_principal
-- What a person asked and was answered in one agent.
SELECT * FROM messages m
WHERE m.agent = :agent AND m.id IN (
    SELECT t.message_id FROM turns t
    WHERE t.agent = :agent AND json_extract(t.principal, '$.id') = :principal AND t.continuation = 0
    UNION SELECT i.value FROM turns t, json_each(t.message_ids) i
    WHERE t.agent = :agent AND json_extract(t.principal, '$.id') = :principal AND t.options IS NULL
    UNION SELECT json_extract(i.value, '$.id') FROM turns t, json_each(t.input) i
    WHERE t.agent = :agent AND json_extract(t.principal, '$.id') = :principal)
ORDER BY m.seq;

-- name: delete_all_versions
-- Replaced contents of messages in whatever session; ids is a JSON array.
DELETE FROM message_versions
WHERE agent = :agent AND session IN (SELECT id FROM sessions WHERE agent = :agent)
  AND id IN (SELECT value FROM json_each(:ids));

-- name: questions_of_principal
-- What was asked on behalf of a person.
SELECT * FROM approvals WHERE agent = :agent AND json_extract(asker, '$.id') = :principal;

-- name: rules_of_principal
-- Rules for a person, and those they made.
SELECT * FROM approval_rules
WHERE agent = :agent AND (principal = :principal OR json_extract(made_by, '$.id') = :principal)
ORDER BY seq;

-- name: erase_blocks_of
-- Versions of an agent's blocks, from a person's first change on: a later one may repeat it.
DELETE FROM context_blocks
WHERE agent = :agent AND EXISTS (
    SELECT 1 FROM context_blocks f
    WHERE f.agent = context_blocks.agent AND f.session = context_blocks.session
      AND f.label = context_blocks.label AND f.key = context_blocks.key
      AND f.principal = :principal AND f.version <= context_blocks.version);

-- name: erase_prompts_of
-- Prompts of an agent that a person has written to: they may quote it.
DELETE FROM prompts WHERE agent = :agent;

-- name: erase_shared_blocks_of
-- The same of blocks that agents of a class share, and all that belongs to the person.
DELETE FROM context_blocks
WHERE substr(agent, 1, 1) = '/' AND (agent = '/principal/' || :principal OR EXISTS (
    SELECT 1 FROM context_blocks f
    WHERE f.agent = context_blocks.agent AND f.session = context_blocks.session
      AND f.label = context_blocks.label AND f.key = context_blocks.key
      AND f.principal = :principal AND f.version <= context_blocks.version));

-- name: erase_later_class_blocks
-- Versions of what a class shares that are younger than a person's first change.
DELETE FROM context_blocks
WHERE substr(agent, 1, 7) = '/class/' AND EXISTS (
    SELECT 1 FROM context_blocks f
    WHERE f.agent = context_blocks.agent AND f.session = context_blocks.session
      AND f.label = context_blocks.label AND f.key = context_blocks.key
      AND f.principal = :principal AND f.version < context_blocks.version);

-- name: blank_class_blocks_of
-- A person's first change, when it is the last version: it says what the one before it said. The row
-- stays until `erase_shared_blocks_of`, because it leads to the agents that were shown the block.
UPDATE context_blocks
SET (content, description) = (
    SELECT p.content, p.description FROM context_blocks p
    WHERE p.agent = context_blocks.agent AND p.session = context_blocks.session
      AND p.label = context_blocks.label AND p.key = context_blocks.key
      AND p.version < context_blocks.version ORDER BY p.version DESC LIMIT 1)
WHERE substr(agent, 1, 7) = '/class/' AND principal = :principal;

-- name: agents_shown_blocks_of
-- The agents of the classes whose shared blocks a person has changed.
SELECT a.id AS agent FROM agents a WHERE EXISTS (
    SELECT 1 FROM context_blocks b
    WHERE b.principal = :principal AND substr(b.agent, 1, 7) = '/class/'
      AND substr(a.id, 1, length(b.agent) - 6) = substr(b.agent, 8) || '/')
ORDER BY a.id;

-- name: erase_prompts_of_class
-- Prompts of every agent of the classes whose shared blocks a person has changed.
DELETE FROM prompts WHERE EXISTS (
    SELECT 1 FROM context_blocks b
    WHERE b.principal = :principal AND substr(b.agent, 1, 7) = '/class/'
      AND substr(prompts.agent, 1, length(b.agent) - 6) = substr(b.agent, 8) || '/');

-- name: blocks_of_principal
-- What was written into an agent's blocks in a person's turns.
SELECT * FROM context_blocks WHERE agent = :agent AND principal = :principal
ORDER BY session, label, key, version;

-- name: shared_blocks_of_principal
-- What belongs to a person, and what was written in their turns into what a class shares.
SELECT * FROM context_blocks
WHERE agent = '/principal/' || :principal
   OR (substr(agent, 1, 1) = '/' AND principal = :principal)
ORDER BY agent, session, label, key, version;
