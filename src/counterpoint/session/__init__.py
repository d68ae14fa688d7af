"""The engine around concurrent composition: what a person holds (S3 sec. 5)."""
