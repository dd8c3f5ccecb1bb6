"""Who else is asked, and what became of it?

The plan of sources, the fan-out that asks them in time, what was measured of them, and the cache of what they said.
"""
