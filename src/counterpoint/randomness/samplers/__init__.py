"""The exact samplers of integers: discrete Laplace and Gaussian, rounded normal, uniform."""
