DROP INDEX ix_call_results_keep_until;
ALTER TABLE call_results DROP COLUMN keep_until;
