-- Keys by which programs are known to a server. Of a secret only its SHA-256 is kept, in hex.
CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    secret_hash TEXT NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    agent_id TEXT,
    user_id TEXT,
    roles TEXT NOT NULL,
    rights TEXT NOT NULL,
    created_at {INT} NOT NULL,
    created_by TEXT NOT NULL,
    expires_at {INT},
    revoked_at {INT}
);
CREATE UNIQUE INDEX ix_api_keys_secret_hash ON api_keys (secret_hash);
