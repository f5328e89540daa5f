-- Questions to people. state: 0 open, 1 approved, 2 denied, 3 expired, 4 used up.
CREATE TABLE approvals (
    approval_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    state {INT} NOT NULL,
    execution_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    summary TEXT NOT NULL,
    risk TEXT NOT NULL,
    reason TEXT NOT NULL,
    arguments TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    preview TEXT,
    agent_id TEXT NOT NULL,
    user_id TEXT,
    session_id TEXT,
    asked_at {INT} NOT NULL,
    expires_at {INT},
    answered_at {INT},
    answered_by TEXT,
    answer_reason TEXT,
    used_at {INT},
    used_by TEXT
);
CREATE INDEX ix_approvals_state ON approvals (tenant, state, asked_at);

-- Confirmations that a person gave ahead of time.
CREATE TABLE grants (
    grant_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    agent_id TEXT,
    user_id TEXT,
    session_id TEXT,
    covers TEXT NOT NULL,
    shown TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at {INT} NOT NULL,
    expires_at {INT},
    revoked_at {INT},
    revoked_by TEXT
);
CREATE INDEX ix_grants_tool ON grants (tenant, tool_name);
