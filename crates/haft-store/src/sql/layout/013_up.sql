-- How far each call came with what its command wrote apart from the files: staged, ran, applying, or what became of it.
CREATE TABLE change_steps (
    execution_id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    step TEXT NOT NULL,
    changed_at {INT} NOT NULL
);
