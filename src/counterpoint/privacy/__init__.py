"""What a mechanism promises, about what: secrets, messages, claims, samples and relations."""
