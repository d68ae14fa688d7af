"""Rules for losses chosen adaptively: filters, odometers, slots, parallel composition."""
