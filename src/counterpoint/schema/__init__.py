"""What is public about data: columns, units, and expressions over them."""
