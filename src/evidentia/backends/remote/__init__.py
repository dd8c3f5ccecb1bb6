"""On what does it run? Another Evidentia, over HTTP or gRPC.

gRPC needs the extra `grpc`.
"""
