DROP TABLE change_steps;
