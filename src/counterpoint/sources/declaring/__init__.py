"""What a custodian declares about the data."""
