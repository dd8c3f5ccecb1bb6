"""Signed tokens of an identity provider, verified with PyJWT.

Needs the extra `server`; nothing else imports `jwt`.
"""
