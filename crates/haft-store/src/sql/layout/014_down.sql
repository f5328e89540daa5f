DROP TABLE tool_stamp;
DROP TABLE tool_aliases;
DROP INDEX ix_tool_registrations_switched;
DROP INDEX ix_tool_registrations_created;
DROP INDEX ix_tool_registrations_changed;
DROP INDEX ix_tool_registrations_server;
ALTER TABLE tool_registrations DROP COLUMN mcp_server;
ALTER TABLE tool_registrations DROP COLUMN changed_stamp;
ALTER TABLE tool_registrations DROP COLUMN created_stamp;
