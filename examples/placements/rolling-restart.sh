#!/bin/sh
# Restart the executors of a SparkApplication one after the other, each new one before its old one goes:
#   sh rolling-restart.sh NAMESPACE APPLICATION
# It ends at the first one that is not replaced, with the others untouched.
set -eu
namespace=${1:?NAMESPACE and APPLICATION must be given} application=${2:?APPLICATION must be given after NAMESPACE}

executors=$(kubectl get pods -n "$namespace" -l "spark-role=executor,sparkoperator.k8s.io/app-name=$application" \
  --field-selector status.phase=Running -o jsonpath='{.items[*].metadata.name}')
if [ -z "$executors" ]; then
  echo "no executor of application $application runs in namespace $namespace" >&2
  exit 1
fi

for pod in $executors; do
  placement=$(kubectl create -n "$namespace" -o name -f - <<EOF
apiVersion: sparkdrain.io/v1alpha1
kind: ExecutorPlacement
metadata:
  generateName: $application-restart-
spec:
  applicationRef:
    apiVersion: sparkoperator.k8s.io/v1beta2
    kind: SparkApplication
    name: $application
  podName: $pod
  destination:
    type: LastSeen
  ttlSecondsAfterFinished: 86400
EOF
)
  kubectl wait -n "$namespace" "$placement" --for=condition=Finished --timeout=15m
  kubectl wait -n "$namespace" "$placement" --for=condition=Succeeded --timeout=1s
done
