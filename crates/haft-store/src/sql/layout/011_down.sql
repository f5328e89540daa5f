ALTER TABLE grants DROP COLUMN granted_from;
