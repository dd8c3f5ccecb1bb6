"""The file of governance: policies, tokens, secrets and the audit log of their changes."""
