-- Tool calls whose outcome nobody has been told, for all turns of an agent.
CREATE INDEX tool_calls_open ON tool_calls (agent, tool_name) WHERE settled_at IS NULL OR outcome = 'late';
