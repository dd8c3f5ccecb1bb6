"""Learned merging by gradient-boosted trees: a model file becomes scores, and judged groups become a model file.

Needs the extra `learned`. LightGBM takes a second to import and is imported when a model is opened or fitted, not before.
"""
