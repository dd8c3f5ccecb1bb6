"""The package of the schema.

Written by tools/write_proto.py; nothing here is changed by hand.
"""
