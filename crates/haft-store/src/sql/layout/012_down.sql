DROP INDEX ix_tool_executions_id;
ALTER TABLE tool_executions DROP COLUMN metadata_json;
ALTER TABLE tool_executions DROP COLUMN error_message;
ALTER TABLE tool_executions DROP COLUMN parameters_json;
ALTER TABLE tool_executions DROP COLUMN id;
