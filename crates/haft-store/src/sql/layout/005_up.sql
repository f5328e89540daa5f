-- Calls that go on without their callers. state: 0 pending, 1 running, 2 waits for a person, 3 completed, 4 failed,
-- 5 cancelled. instance_id: the process that runs it; empty where nobody does. The call itself is kept until the end.
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    runner TEXT NOT NULL,
    instance_id TEXT,
    state {INT} NOT NULL,
    execution_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    user_id TEXT,
    session_id TEXT,
    context TEXT NOT NULL,
    call_json TEXT,
    options_json TEXT,
    place_json TEXT,
    approval_id TEXT,
    created_at {INT} NOT NULL,
    updated_at {INT} NOT NULL,
    start_by {INT},
    finished_at {INT},
    ttl {INT} NOT NULL,
    expires_at {INT},
    percent {INT},
    message TEXT,
    output_bytes {INT} NOT NULL DEFAULT 0,
    output_tail TEXT NOT NULL DEFAULT '',
    cancel_requested {INT} NOT NULL DEFAULT 0,
    result {BLOB}
);
CREATE INDEX ix_tasks_created_at ON tasks (tenant, created_at, task_id);
CREATE INDEX ix_tasks_open ON tasks (runner, created_at, task_id) WHERE state < 3;
CREATE INDEX ix_tasks_execution_id ON tasks (execution_id);
CREATE INDEX ix_tasks_expires_at ON tasks (expires_at) WHERE expires_at IS NOT NULL;
