"""kopf's credentials: the same as those of the operator's own requests."""

from __future__ import annotations

import os
from typing import Any

import kopf

__all__ = ["register_login"]


def register_login(registry: kopf.OperatorRegistry) -> None:
    """Log in as the pod's service account, or as KUBECONFIG says."""

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        if "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ:
            return kopf.login_with_service_account(**kwargs)
        return kopf.login_with_kubeconfig(**kwargs)
