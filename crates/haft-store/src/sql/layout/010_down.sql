ALTER TABLE approvals DROP COLUMN detail;
