"""A twin of a job that runs on Apache Flink: imported, calibrated, predicted."""
