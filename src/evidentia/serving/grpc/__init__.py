"""gRPC: the same operations as every other door, with deadlines that reach the engine, health and reflection.

It translates between messages and operations, and refuses to decide.
"""
