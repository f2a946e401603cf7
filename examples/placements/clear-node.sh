#!/bin/sh
# Move the executors of all SparkApplications of a namespace off a node, which takes no new pods from then on:
#   sh clear-node.sh NAMESPACE NODE
# All are asked for at once; those of one application go one after the other.
set -eu
namespace=${1:?NAMESPACE and NODE must be given} node=${2:?NODE must be given after NAMESPACE}

kubectl cordon "$node"
executors=$(kubectl get pods -n "$namespace" -l spark-role=executor,sparkoperator.k8s.io/app-name \
  --field-selector "spec.nodeName=$node,status.phase=Running" \
  -o jsonpath='{range .items[*]}{.metadata.labels.sparkoperator\.k8s\.io/app-name}/{.metadata.name}{"\n"}{end}')
[ -n "$executors" ] || echo "no executor of a SparkApplication of namespace $namespace runs on $node" >&2

placements=
for executor in $executors; do
  placements="$placements $(kubectl create -n "$namespace" -o name -f - <<EOF
apiVersion: sparkdrain.io/v1alpha1
kind: ExecutorPlacement
metadata:
  generateName: ${executor%%/*}-off-
spec:
  applicationRef:
    apiVersion: sparkoperator.k8s.io/v1beta2
    kind: SparkApplication
    name: ${executor%%/*}
  podName: ${executor#*/}
  destination:
    type: AnyOther
  ttlSecondsAfterFinished: 86400
EOF
)"
done
for placement in $placements; do
  kubectl wait -n "$namespace" "$placement" --for=condition=Finished --timeout=30m
done
for placement in $placements; do
  kubectl wait -n "$namespace" "$placement" --for=condition=Succeeded --timeout=1s
done
