-- By which way a grant was given: one that came by a way whose answers do not count covers nothing.
ALTER TABLE grants ADD COLUMN granted_from TEXT;
