-- What a question needs to be answered from elsewhere, and later. State 5: a person changed the arguments.
ALTER TABLE approvals ADD COLUMN batch_id TEXT;
ALTER TABLE approvals ADD COLUMN footprint TEXT;
ALTER TABLE approvals ADD COLUMN offers TEXT;
ALTER TABLE approvals ADD COLUMN replaces TEXT;
ALTER TABLE approvals ADD COLUMN edited TEXT;
ALTER TABLE approvals ADD COLUMN answered_from TEXT;
CREATE INDEX ix_approvals_fingerprint ON approvals (tenant, fingerprint);
