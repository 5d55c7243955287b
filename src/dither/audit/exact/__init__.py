"""Proves: `prices` certifies prices on exact laws, `walk` follows the bits of a sampler, `samplers` lists those to walk."""
