"""Evidentia: which evidence may this agent use, where did it come from, and how do we know?

The public names are listed in `_EXPORTS` and imported on first use, so that `import evidentia` stays cheap.
"""
