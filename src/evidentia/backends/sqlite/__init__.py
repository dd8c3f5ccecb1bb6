"""Statements over tables in SQLite: checked by the guard, and run behind walls of the database's own."""
