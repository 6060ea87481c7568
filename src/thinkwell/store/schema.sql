-- The whole schema as it stands after every migration; a test holds the two together.
-- Types are those both SQLite and PostgreSQL read alike; only the identity columns and BLOB
-- (there BYTEA) differ.
-- Times are seconds since the epoch. JSON is TEXT.

CREATE TABLE schema_version (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    class TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    state TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    deleted_at DOUBLE PRECISION,
    paused_at DOUBLE PRECISION,
    pause_reason TEXT
);
CREATE INDEX agents_deleted ON agents (id) WHERE deleted_at IS NOT NULL;

-- The highest epoch that went with a deleted agent: a new agent of its name begins above it. One row.
CREATE TABLE removed_epochs (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    highest BIGINT NOT NULL
);

CREATE TABLE sessions (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    active_leaf TEXT,
    PRIMARY KEY (agent, id)
);

-- A child is always newer (seq) than its parent, so every walk along the tree ends.
-- depth, cum_bytes and cum_tokens count the path from the root to the row, the row included.
-- content stands last: reading the other columns then never touches its overflow pages.
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT,
    role TEXT NOT NULL,
    depth BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    cum_bytes BIGINT NOT NULL,
    cum_tokens BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    created_at DOUBLE PRECISION NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (agent, session, id)
);
CREATE INDEX messages_by_parent ON messages (agent, session, parent_id);
CREATE INDEX messages_by_age ON messages (agent, session, seq);

CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    trigger TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('accepted', 'running', 'completed', 'error', 'aborted', 'skipped')),
    generation BIGINT NOT NULL,
    continuation BIGINT NOT NULL DEFAULT 0,
    input TEXT,
    options TEXT,
    body TEXT,
    client_tools TEXT,
    idempotency_key TEXT,
    metadata TEXT,
    message_id TEXT,
    message_ids TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    journal_start BIGINT,
    cancel_requested TEXT,
    error TEXT,
    client_error TEXT,
    stop_reason TEXT,
    usage TEXT,
    steps BIGINT NOT NULL DEFAULT 0,
    hooks_owed BIGINT NOT NULL DEFAULT 0,
    continuation_owed BIGINT NOT NULL DEFAULT 0,
    output TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    started_at DOUBLE PRECISION,
    settled_at DOUBLE PRECISION,
    principal TEXT,
    incident TEXT,
    code TEXT,
    spent TEXT,
    UNIQUE (agent, id)
);
CREATE UNIQUE INDEX turns_by_key ON turns (agent, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX turns_by_message ON turns (agent, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX turns_by_age ON turns (agent, seq);
CREATE INDEX turns_unsettled ON turns (agent, seq) WHERE status IN ('accepted', 'running');
CREATE INDEX turns_owing_hooks ON turns (agent, seq) WHERE hooks_owed > 0;
CREATE INDEX turns_owing_continuation ON turns (agent, seq) WHERE continuation_owed = 1;

-- Append-only while a turn runs. The position is its only key: an index by turn would cost every
-- streamed chunk, and the turn row knows where its journal starts.
CREATE TABLE journal (
    pos INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    seq_from BIGINT NOT NULL,
    seq_to BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);

-- One row per ended turn. `format` says how to read it: 0 has its chunks in `chunks`, 1 has `stream`
-- and `events` (journal/packing.py).
CREATE TABLE packed_journals (
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    settled_at DOUBLE PRECISION NOT NULL,
    chunks TEXT NOT NULL,
    format BIGINT NOT NULL DEFAULT 0,
    stream BLOB,
    events BLOB,
    PRIMARY KEY (agent, turn)
);
CREATE INDEX packed_by_age ON packed_journals (settled_at);

CREATE TABLE tool_calls (
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    input TEXT,
    effect TEXT NOT NULL,
    idempotency_key TEXT,
    step BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'settled')),
    outcome TEXT,
    output TEXT,
    error TEXT,
    claimed_at DOUBLE PRECISION NOT NULL,
    settled_at DOUBLE PRECISION,
    PRIMARY KEY (agent, turn, call_id)
);
CREATE INDEX tool_calls_open ON tool_calls (agent, tool_name) WHERE settled_at IS NULL OR outcome = 'late';

-- One row per start of the process: whether it lived for a while, whether its stop was planned.
CREATE TABLE boots (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at DOUBLE PRECISION NOT NULL,
    steady BIGINT NOT NULL DEFAULT 0,
    stopped_at DOUBLE PRECISION
);

-- Who approved or answered which tool call.
CREATE TABLE decisions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    turn TEXT,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('answer', 'approve')),
    approved BIGINT,
    reason TEXT,
    principal TEXT,
    by_client BIGINT NOT NULL,
    decided_at DOUBLE PRECISION NOT NULL,
    approval_id TEXT,
    input_hash TEXT,
    schema_hash TEXT,
    rule TEXT,
    expired BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX decisions_by_agent ON decisions (agent, seq);
CREATE INDEX decisions_by_rule ON decisions (agent, message_id, tool_call_id) WHERE rule IS NOT NULL;

-- Agents at whose start the process may have died: the life that starts one now, the deaths before.
CREATE TABLE starts (
    agent TEXT PRIMARY KEY,
    boot BIGINT,
    deaths BIGINT NOT NULL DEFAULT 0
);

-- Whom a tool names to decide about a call that waits: the tool itself may be gone by then.
CREATE TABLE approvers (
    agent TEXT NOT NULL,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    ids TEXT,
    PRIMARY KEY (agent, message_id, tool_call_id)
);

-- What somebody was asked: a call, bound to its arguments and to the schema its model was shown.
CREATE TABLE approvals (
    agent TEXT NOT NULL,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    turn TEXT,
    tool_name TEXT NOT NULL,
    input TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    asker TEXT,
    note TEXT,
    asked_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION,
    outcome TEXT CHECK (outcome IN ('allowed', 'denied', 'expired', 'withdrawn')),
    decided_at DOUBLE PRECISION,
    PRIMARY KEY (agent, message_id, tool_call_id)
);
CREATE INDEX open_approvals ON approvals (agent, asked_at) WHERE outcome IS NULL;

-- Calls that are allowed without asking again.
CREATE TABLE approval_rules (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    principal TEXT,
    arguments TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    made_by TEXT,
    by_client BIGINT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    revoked_at DOUBLE PRECISION,
    UNIQUE (agent, id)
);
CREATE INDEX rules_of_tool ON approval_rules (agent, tool_name) WHERE revoked_at IS NULL;

-- Values that an agent and its features keep; each owner has its own keys.
CREATE TABLE storage (
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (agent, owner, key)
);

-- Durable calls of named methods, outside the agent's slot. An id sorts by its time. jobs_wake is the
-- wake index: what is due next, over all agents; jobs_due is the same for one agent. A job is held
-- when nothing can run it now: it leaves both until the next start of the process.
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    due_at DOUBLE PRECISION NOT NULL,
    idempotency_key TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    base_delay DOUBLE PRECISION NOT NULL,
    max_delay DOUBLE PRECISION NOT NULL,
    deaths BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT,
    boot BIGINT,
    held TEXT,
    cancel_requested TEXT,
    error TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    started_at DOUBLE PRECISION,
    finished_at DOUBLE PRECISION,
    payload TEXT,
    stash TEXT,
    principal TEXT,
    read_only BIGINT NOT NULL DEFAULT 0,
    kind TEXT,
    recurs TEXT,
    scheduled_for DOUBLE PRECISION,
    outcome TEXT,
    UNIQUE (agent, id)
);
CREATE UNIQUE INDEX jobs_by_key ON jobs (agent, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_wake ON jobs (due_at, seq, agent) WHERE status = 'waiting' AND held IS NULL;
CREATE INDEX jobs_due ON jobs (agent, due_at, seq) WHERE status = 'waiting' AND held IS NULL;
CREATE INDEX jobs_running ON jobs (seq) WHERE status = 'running';
CREATE INDEX jobs_held ON jobs (seq) WHERE held IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_of_kind ON jobs (agent, kind, held, seq)
    WHERE kind IS NOT NULL AND finished_at IS NULL;

-- Texts that many turns have in common (prompts, tool schemas), by hash, and who refers to them.
CREATE TABLE blobs (
    hash TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE blob_uses (
    agent TEXT NOT NULL,
    hash TEXT NOT NULL,
    used_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (agent, hash)
);
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);
CREATE INDEX blob_uses_by_age ON blob_uses (used_at);

-- What messages said before they were replaced: journals refer to it.
CREATE TABLE message_versions (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    version BIGINT NOT NULL,
    replaced_at DOUBLE PRECISION NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (agent, session, id, version)
);
CREATE INDEX message_versions_by_age ON message_versions (replaced_at);

-- When each agent was last talked to. Apart from `agents`: every turn writes it, and a row there may
-- hold a long state.
CREATE TABLE conversations (
    agent TEXT NOT NULL PRIMARY KEY,
    class TEXT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX conversations_by_age ON conversations (class, updated_at DESC, agent);

-- Search over what was said. Made from `messages` by a job, and always behind them by a little:
-- `search_marks` says up to which message each class is indexed, `search_again` which of those have
-- changed or gone since. A message is long enough for several entries, or has no text and none.
CREATE TABLE search_marks (
    class TEXT NOT NULL PRIMARY KEY,
    upto BIGINT NOT NULL
);
CREATE TABLE search_again (
    seq INTEGER PRIMARY KEY
);
CREATE TABLE search_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    message_id TEXT NOT NULL,
    whose TEXT,
    role TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    scope TEXT NOT NULL,
    text TEXT NOT NULL,
    lead TEXT NOT NULL,
    parts TEXT NOT NULL,
    UNIQUE (seq, piece)
);
CREATE INDEX search_entries_by_agent ON search_entries (agent, whose);
-- Whose words stand in `lead` of an entry: it is made anew when one of them changes.
CREATE TABLE search_leads (
    above BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (above, seq)
);
CREATE INDEX search_leads_by_entry ON search_leads (seq);
CREATE VIRTUAL TABLE search_words USING fts5(
    text, lead, scope,
    content='search_entries', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE search_parts USING fts5(
    parts, content='search_entries', content_rowid='id', tokenize='trigram'
);
CREATE TRIGGER search_entry_added AFTER INSERT ON search_entries BEGIN
    INSERT INTO search_words (rowid, text, lead, scope)
    VALUES (new.id, new.text, new.lead, new.scope);
    INSERT INTO search_parts (rowid, parts) SELECT new.id, new.parts WHERE new.parts <> '';
END;
CREATE TRIGGER search_entry_gone AFTER DELETE ON search_entries BEGIN
    INSERT INTO search_words (search_words, rowid, text, lead, scope)
    VALUES ('delete', old.id, old.text, old.lead, old.scope);
    INSERT INTO search_parts (search_parts, rowid, parts)
    SELECT 'delete', old.id, old.parts WHERE old.parts <> '';
END;
-- Whatever deletes or changes a message, its entries are out of date from the same commit on. Where
-- nothing is indexed there is no mark, and nothing is written.
CREATE TRIGGER search_message_gone AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM search_marks
             WHERE class = substr(old.agent, 1, instr(old.agent, '/') - 1) AND upto >= old.seq)
BEGIN
    INSERT OR IGNORE INTO search_again (seq) VALUES (old.seq);
    INSERT OR IGNORE INTO search_again (seq) SELECT seq FROM search_leads WHERE above = old.seq;
END;
CREATE TRIGGER search_message_changed AFTER UPDATE OF content ON messages
WHEN EXISTS (SELECT 1 FROM search_marks
             WHERE class = substr(old.agent, 1, instr(old.agent, '/') - 1) AND upto >= old.seq)
BEGIN
    INSERT OR IGNORE INTO search_again (seq) VALUES (old.seq);
    INSERT OR IGNORE INTO search_again (seq) SELECT seq FROM search_leads WHERE above = old.seq;
END;

-- One row for each version of a context block; the highest one counts. `agent` is whose it is: an
-- agent, or everybody of a class (`/class/NAME`) or everything of a person (`/principal/ID`).
-- `session` is '*' for what all sessions share, `key` is '' for a block without entries. `content` is
-- NULL where an entry was deleted. `writer` is the agent that wrote it, `source` is 'model' or 'code'.
CREATE TABLE context_blocks (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    label TEXT NOT NULL,
    key TEXT NOT NULL,
    version BIGINT NOT NULL,
    writer TEXT NOT NULL,
    source TEXT NOT NULL,
    principal TEXT,
    turn TEXT,
    tool_call_id TEXT,
    restored BIGINT,
    description TEXT,
    changed_at DOUBLE PRECISION NOT NULL,
    content TEXT,
    PRIMARY KEY (agent, session, label, key, version)
);

-- System prompts made of context blocks: the same bytes until somebody asks for new ones. `principal`
-- is '' unless a block of it belongs to a person; `shown` says which versions are in it.
CREATE TABLE prompts (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    principal TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    shown TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    prompt TEXT,
    PRIMARY KEY (agent, session, principal)
);

-- What budgets have been used for: one row for each turn, agent, principal or day that has one.
CREATE TABLE spending (
    scope TEXT NOT NULL PRIMARY KEY,
    agent TEXT,
    principal TEXT,
    nano_usd BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    reserved_nano_usd BIGINT NOT NULL DEFAULT 0,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    added_nano_usd BIGINT NOT NULL DEFAULT 0,
    added_tokens BIGINT NOT NULL DEFAULT 0,
    changed_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX spending_of_agent ON spending (agent) WHERE agent IS NOT NULL;

-- The most that a step which runs can cost; it is part of the reserved sums above.
CREATE TABLE reservations (
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    step BIGINT NOT NULL,
    scopes TEXT NOT NULL,
    nano_usd BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    reserved_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (agent, turn)
);
-- Pieces of the search index are merged when the job says so, a few pages at a time: FTS5's own merges
-- come with whatever insert is next, and some of them take a tenth of a second.
INSERT INTO search_words (search_words, rank) VALUES ('automerge', 0);
INSERT INTO search_words (search_words, rank) VALUES ('crisismerge', 1000);
INSERT INTO search_parts (search_parts, rank) VALUES ('automerge', 0);
INSERT INTO search_parts (search_parts, rank) VALUES ('crisismerge', 1000);
