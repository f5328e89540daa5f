DROP TABLE output_chunks;
DROP TABLE output_bodies;
DROP TABLE outputs;
