"""What do we talk about?

Messages, ids, the filter tree, errors and ports. Refuses to do input or output, to read a clock, or to import any other
room.
"""
