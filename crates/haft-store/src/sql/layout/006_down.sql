DROP TABLE running_output;
