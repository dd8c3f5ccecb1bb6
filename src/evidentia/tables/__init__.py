"""What does a table look like, how is a question planned for it, and how is a result written down?

Cells become tables (`grids`, `regions`, `column_types`, `extraction`); tables are ranked for a question (`table_choice`), its words are
linked to names and values (`entity_linking`), and one statement is planned or declined (`planner`); `asker` runs it and names each row.
"""

TABLES_VERSION = "1"
"""Part of the fingerprint of every file that may hold tables: another number has them read again."""
