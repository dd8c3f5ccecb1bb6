"""What can be asked of a served base, by whom and with what, whichever door it comes through.

Every operation stands here once; doors translate to and from it, and refuse to decide.
"""
