-- Processes that share the database. One that is gone without having ended leaves ended_at empty.
CREATE TABLE instances (
    instance_id TEXT PRIMARY KEY,
    process_id {INT} NOT NULL,
    begun_at {INT} NOT NULL,
    ended_at {INT},
    swept {INT} NOT NULL DEFAULT 0
);

-- Small facts about the database itself.
CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- The end of the audit chain: one row. `ratchet` is the key of the record that comes next.
CREATE TABLE audit_head (
    only_one {ROW} CHECK (only_one = 1),
    chain_id TEXT NOT NULL,
    seq {INT} NOT NULL,
    mac {BLOB} NOT NULL,
    ratchet {BLOB} NOT NULL,
    projected {INT} NOT NULL,
    anchor_seq {INT} NOT NULL,
    anchor_mac {BLOB} NOT NULL
);

-- Append-only. A record that was archived keeps its digest in place of its body.
CREATE TABLE audit_log (
    seq {ROW},
    body TEXT,
    digest {BLOB},
    mac {BLOB} NOT NULL
);

-- What came in and went out, for as long as results are kept.
CREATE TABLE call_results (
    seq {ROW},
    execution_id TEXT NOT NULL,
    kept_at {INT} NOT NULL,
    input TEXT,
    result {BLOB}
);

-- One row for each call that ended, worked out from the audit log.
CREATE TABLE tool_executions (
    seq {ROW},
    execution_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    status {INT} NOT NULL,
    error_code TEXT,
    started_at {INT} NOT NULL,
    completed_at {INT} NOT NULL,
    duration_ms {REAL} NOT NULL,
    output_size_bytes {INT} NOT NULL,
    output_truncated {INT} NOT NULL,
    output_handle TEXT,
    sandbox_id TEXT,
    agent_id TEXT NOT NULL,
    user_id TEXT,
    session_id TEXT,
    batch_id TEXT,
    batch_index {INT},
    correlation_id TEXT
);
CREATE INDEX ix_tool_executions_execution_id ON tool_executions (execution_id);
CREATE INDEX ix_tool_executions_started_at ON tool_executions (tenant, started_at, seq);
CREATE INDEX ix_tool_executions_tool_name ON tool_executions (tenant, tool_name, started_at, seq);
CREATE INDEX ix_tool_executions_status ON tool_executions (tenant, status, started_at, seq);
CREATE INDEX ix_tool_executions_agent_id ON tool_executions (tenant, agent_id, started_at, seq);
CREATE INDEX ix_tool_executions_batch_id ON tool_executions (batch_id, batch_index) WHERE batch_id IS NOT NULL;

-- Calls that were about to have an effect and have no outcome yet. state: 0 open, 1 outcome unknown, 2 decided about.
CREATE TABLE intents (
    execution_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    state {INT} NOT NULL,
    batch_id TEXT,
    batch_index {INT},
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    context TEXT NOT NULL,
    approval_id TEXT,
    attempt {INT} NOT NULL,
    attempted_at {INT} NOT NULL,
    begun_at {INT} NOT NULL
);

-- state: 0 streaming in, 1 sealed, 2 closed, 3 resumed after a crash, 4 discarded after a crash.
CREATE TABLE batches (
    batch_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    state {INT} NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    model TEXT,
    assistant_text TEXT NOT NULL,
    begun_at {INT} NOT NULL,
    sealed_at {INT},
    closed_at {INT}
);
CREATE INDEX ix_batches_open ON batches (instance_id) WHERE state < 2;

CREATE TABLE batch_calls (
    batch_id TEXT NOT NULL,
    call_index {INT} NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    execution_id TEXT,
    plan TEXT,
    PRIMARY KEY (batch_id, call_index)
);

-- Pieces of text and arguments as they stream in; put together when the batch is sealed. call_index -1: the words.
CREATE TABLE batch_deltas (
    seq {COUNTER},
    batch_id TEXT NOT NULL,
    call_index {INT} NOT NULL,
    delta TEXT NOT NULL
);
CREATE INDEX ix_batch_deltas_batch ON batch_deltas (batch_id, call_index, seq);

-- state: 0 in flight, 1 settled, 2 waits for a person, 3 outcome unknown.
CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    arguments_digest {BLOB} NOT NULL,
    execution_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    state {INT} NOT NULL,
    approval_id TEXT,
    result {BLOB},
    changed_at {INT} NOT NULL,
    PRIMARY KEY (tenant, principal, tool_name, idempotency_key)
);
CREATE INDEX ix_idempotency_keys_instance ON idempotency_keys (instance_id) WHERE state = 0;
