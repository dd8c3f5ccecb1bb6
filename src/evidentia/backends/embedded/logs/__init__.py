"""What is appended as things happen: decisions, receipts, traces and usage."""
