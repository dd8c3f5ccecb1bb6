"""How do the cells of a sheet become tables?

`grids` holds the cells, `regions` finds the blocks that are tables, `headers` says which rows name the columns and which add up,
`columns` says what the cells are, `naming` gives the names that statements use, and `extract` calls them in this order.
"""

TABLES_VERSION = "1"
"""Part of the fingerprint of every file that may hold tables: another number has them read again."""
