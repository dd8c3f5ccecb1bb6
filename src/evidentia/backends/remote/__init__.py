"""On what does it run? Another Evidentia, over HTTP or gRPC.

Needs the extra `remote`, and for gRPC the extra `grpc`.
"""
