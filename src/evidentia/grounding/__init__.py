"""Is the claim supported?

Pure scoring of claims against passages; refuses to fetch the passages.
"""
