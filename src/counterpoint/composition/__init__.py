"""What launches cost together: filters, odometers, slots, parallel parts, and the sums they keep."""
