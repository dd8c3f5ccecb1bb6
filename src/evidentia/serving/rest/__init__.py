"""The control plane over HTTP: policies, runs, decisions, audit, tokens and secrets as JSON.

It translates between requests and ports, and refuses to decide: policies are checked and runs are judged by the parts it is given.
"""
