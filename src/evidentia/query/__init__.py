"""What is being asked?

Pure understanding of a request: classification, rewriting, decomposition and plans.
"""
