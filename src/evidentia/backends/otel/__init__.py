"""What others are told about requests: spans for OpenTelemetry, metrics for Prometheus, and lines for a log.

Spans and metrics need the extra `otel`, lines need nothing. No word of a question or an answer leaves through here.
"""
