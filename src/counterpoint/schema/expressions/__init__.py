"""The one language of conditions and derived values."""
