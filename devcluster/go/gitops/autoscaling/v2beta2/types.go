// Package v2beta2 has the names that gitops-engine takes from this version of the API, which Kubernetes 1.36 has no package of any more.
package v2beta2

import (
	"k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is compared with an object's.
var SchemeGroupVersion = schema.GroupVersion{Group: "autoscaling", Version: "v2beta2"}

// HorizontalPodAutoscaler is read for its conditions, which are as in v2.
type HorizontalPodAutoscaler = v2.HorizontalPodAutoscaler
