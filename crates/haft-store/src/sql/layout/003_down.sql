DROP TABLE grants;
DROP TABLE approvals;
