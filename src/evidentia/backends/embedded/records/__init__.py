"""What a base holds: documents, versions, sources and attachments in SQLite, their writer, readers and collection."""
