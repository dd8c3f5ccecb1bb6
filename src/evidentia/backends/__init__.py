"""On what does it run?

One folder per engine, each behind ports and each removable alone.
"""
