"""The first version of the schema, and its messages.

Written by tools/write_proto.py; nothing here is changed by hand.
"""
