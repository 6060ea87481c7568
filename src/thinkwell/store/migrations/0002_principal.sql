-- Who asked for a turn, and finding the turns that wrote an answer.
ALTER TABLE turns ADD COLUMN principal TEXT;
CREATE INDEX turns_by_message ON turns (agent, message_id) WHERE message_id IS NOT NULL;
