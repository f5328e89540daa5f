-- Tools are found one by one, by name or alias, and processes follow a stamp instead of reading everything. What was
-- remembered before has the stamp 0 and no rows of aliases: it is few, and its definitions say them.
ALTER TABLE tool_registrations ADD COLUMN created_stamp {INT} NOT NULL DEFAULT 0;
ALTER TABLE tool_registrations ADD COLUMN changed_stamp {INT} NOT NULL DEFAULT 0;
ALTER TABLE tool_registrations ADD COLUMN mcp_server TEXT;
CREATE INDEX ix_tool_registrations_server ON tool_registrations (mcp_server);
CREATE INDEX ix_tool_registrations_changed ON tool_registrations (changed_stamp);
CREATE INDEX ix_tool_registrations_created ON tool_registrations (created_stamp);
CREATE INDEX ix_tool_registrations_switched ON tool_registrations (tool_name) WHERE definition_json IS NULL;

CREATE TABLE tool_aliases (
    alias TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    PRIMARY KEY (alias, tool_name)
);
CREATE INDEX ix_tool_aliases_tool ON tool_aliases (tool_name);

CREATE TABLE tool_stamp (
    only_one {INT} PRIMARY KEY CHECK (only_one = 1),
    stamp {INT} NOT NULL
);
INSERT INTO tool_stamp (only_one, stamp) VALUES (1, 0);
