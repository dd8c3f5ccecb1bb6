"""May it be used?

Pure decisions over facts that the caller supplies; refuses to enforce anything itself.
"""
