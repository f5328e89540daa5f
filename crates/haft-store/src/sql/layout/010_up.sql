-- What a call that is asked about does in full, and what it runs in: a person sees it before they answer.
ALTER TABLE approvals ADD COLUMN detail TEXT;
