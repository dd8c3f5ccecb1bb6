"""What does the wire look like for gRPC?

Generated code only; nothing here is written by hand.
"""
