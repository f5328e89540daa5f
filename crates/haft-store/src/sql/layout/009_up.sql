-- Until when a result may be kept at the most, by the licence of whoever made the call. Empty: as the configuration says.
ALTER TABLE call_results ADD COLUMN keep_until {INT};
CREATE INDEX ix_call_results_keep_until ON call_results (keep_until) WHERE keep_until IS NOT NULL;
