"""The operator: brings PipelineDrains from request to end.

Layers, each of which may only use those to its right: handlers, kinds, engine and applications, storage.
"""
