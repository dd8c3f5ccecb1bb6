"""How do I use it from the framework I already have?

One lazy module per framework.
"""
