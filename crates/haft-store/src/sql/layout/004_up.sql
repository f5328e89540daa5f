CREATE TABLE tool_registrations (
    tool_name TEXT PRIMARY KEY,
    definition_json TEXT,
    enabled {INT} NOT NULL,
    settings_json TEXT NOT NULL,
    registered_by TEXT,
    registered_at {INT}
);

CREATE TABLE sandbox_security_events (
    event_id {COUNTER},
    seq {INT} NOT NULL,
    tenant TEXT NOT NULL,
    sandbox_id TEXT,
    violation_type TEXT NOT NULL,
    resource TEXT NOT NULL,
    description TEXT NOT NULL,
    was_blocked {INT} NOT NULL,
    happened_at {INT} NOT NULL
);
CREATE INDEX ix_sandbox_security_events_seq ON sandbox_security_events (seq);
CREATE INDEX ix_sandbox_security_events_tenant ON sandbox_security_events (tenant, happened_at);
