"""How the pages of docs/reference are made from the code; nothing in them is written by hand."""
