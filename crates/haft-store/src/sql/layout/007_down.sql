DROP INDEX ix_approvals_fingerprint;
UPDATE approvals SET state = 3 WHERE state = 5;
ALTER TABLE approvals DROP COLUMN answered_from;
ALTER TABLE approvals DROP COLUMN edited;
ALTER TABLE approvals DROP COLUMN replaces;
ALTER TABLE approvals DROP COLUMN offers;
ALTER TABLE approvals DROP COLUMN footprint;
ALTER TABLE approvals DROP COLUMN batch_id;
