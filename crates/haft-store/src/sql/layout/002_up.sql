-- One row for each handle that was given out.
CREATE TABLE outputs (
    handle TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    body_id {INT} NOT NULL,
    kept_at {INT} NOT NULL
);
CREATE INDEX ix_outputs_body ON outputs (body_id);
CREATE INDEX ix_outputs_kept_at ON outputs (kept_at);

-- The same bytes of the same tenant are kept once. Nothing is shared between tenants.
CREATE TABLE output_bodies (
    body_id {COUNTER},
    tenant TEXT NOT NULL,
    digest {BLOB} NOT NULL,
    size {INT} NOT NULL,
    stored_size {INT} NOT NULL
);
CREATE UNIQUE INDEX ix_output_bodies_digest ON output_bodies (tenant, digest);

-- Compressed one by one, so that a range is read without the rest.
CREATE TABLE output_chunks (
    body_id {INT} NOT NULL,
    chunk {INT} NOT NULL,
    first_line {INT} NOT NULL,
    data {BLOB} NOT NULL,
    PRIMARY KEY (body_id, chunk)
);
