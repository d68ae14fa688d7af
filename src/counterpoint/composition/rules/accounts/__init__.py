"""The accounts that filters and odometers keep: each a bound on what adaptively chosen losses come to."""
