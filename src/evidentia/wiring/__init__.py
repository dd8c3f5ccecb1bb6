"""Which concrete parts make this base?

Settings to objects; the only room that names a backend, the clock and the source of randomness.
"""
