"""What is secret is sealed before it is stored; every change is a link of a hash chain."""
