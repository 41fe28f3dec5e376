"""The checks of model servers: what is asked, and the verdict on the answers.

wire             one cell: the artifact behind a running server, findings for its errors
serve            the three checks over gRPC and REST
serve_examples   Classify, Regress and MultiInference
kinds/           the checks as the harness plans them, found by entry points
"""
