"""What an operator runs and reads: commands, the configuration, workers, the log and the metrics."""
