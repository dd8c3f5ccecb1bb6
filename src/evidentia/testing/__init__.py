"""How do I prove my backend or source is right?

Shipped conformance kits, fakes for faults, and a fault injector.
"""
