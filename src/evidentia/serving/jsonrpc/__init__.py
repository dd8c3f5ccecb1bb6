"""The same operations as JSON-RPC 2.0 at `POST /rpc`: one message by name in, one message out, alone or in batches.

It translates, and refuses to decide: who may do what, and what is wrong with a parameter, is said where REST has it from.
"""
