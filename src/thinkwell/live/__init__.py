"""Who watches an agent: connections, the live stream, and how a late one catches up."""
