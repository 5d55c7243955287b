"""Draws from the laws exactly: table (lookup), digits (geometric), buckets (Gaussian), choice (weighted), uniform."""
