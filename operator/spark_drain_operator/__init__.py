"""The operator: reconciles PipelineDrain objects.

Layers, each of which may only use those to its right: handlers, reconcile, applications, storage, models.
"""
