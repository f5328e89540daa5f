-- What calls with side effects put out while they run. Goes with their outcome; after a crash it becomes an output.
CREATE TABLE running_output (
    execution_id TEXT NOT NULL,
    byte_offset {INT} NOT NULL,
    data {BLOB} NOT NULL,
    PRIMARY KEY (execution_id, byte_offset)
);
