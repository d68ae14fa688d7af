"""The engine around concurrent composition: what a person holds (Haney et al. 2023, sec. 5)."""
