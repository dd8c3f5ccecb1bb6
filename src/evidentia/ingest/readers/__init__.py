"""How does each kind of file become text?

One module per family of formats; `registry` chooses among them and is the only place where a parser's failure becomes ours.
"""
