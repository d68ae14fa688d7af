"""What concurrent composition costs: fixed parameters, filters, odometers, slots, parallel. Pure arithmetic."""
