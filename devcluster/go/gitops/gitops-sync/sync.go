package main

import (
	"context"
	"time"

	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// synchronize carries out one sync operation. The engine package has a loop for that too, but it leaves hooks out where no manifest has
// changed, which Argo CD does not do: its controller compares anew and makes a context for each step, as here.
//
// There is no pause between waves, during which a controller could catch up: health checks must not need one.
func (t *target) synchronize(ctx context.Context, wanted manifests, o options) (result, error) {
	outcome := result{Phase: common.OperationRunning}
	started := metav1.Now()
	var done []common.ResourceSyncResult
	for {
		live, err := t.live(wanted)
		if err != nil {
			return outcome, err
		}
		reconciled := sync.Reconcile(wanted, live, t.namespace, t.cache)
		step, cleanup, err := sync.NewSyncContext(o.revision, reconciled, t.config, t.config, t.kubectl, t.namespace, t.cache.GetOpenAPISchema(),
			sync.WithLogr(logr.Discard()),
			sync.WithHealthOverride(t.health),
			sync.WithInitialState(outcome.Phase, outcome.Message, done, started),
			sync.WithOperationSettings(false, o.prune, false, o.skipHooks || len(o.only) > 0),
			sync.WithResourcesFilter(o.selects),
			sync.WithPrunePropagationPolicy(&t.propagation),
		)
		if err != nil {
			return outcome, err
		}
		step.Sync()
		outcome.Phase, outcome.Message, done = step.GetState()
		cleanup()
		outcome.Resources = summaries(done)
		if outcome.Phase.Completed() {
			return outcome, nil
		}
		select {
		case <-ctx.Done():
			return outcome, nil
		case <-time.After(interval):
		}
	}
}

func (o options) selects(key kube.ResourceKey, _, _ *unstructured.Unstructured) bool {
	return len(o.only) == 0 || o.only[key.Kind+"/"+key.Name]
}

// result is what a sync or deletion prints.
type result struct {
	Phase     common.OperationPhase `json:"phase"`
	Message   string                `json:"message"`
	Resources []summary             `json:"resources"`
}

type summary struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Hook    string `json:"hook"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func summaries(results []common.ResourceSyncResult) []summary {
	found := make([]summary, 0, len(results))
	for _, one := range results {
		status := string(one.Status)
		if one.HookType != "" {
			status = string(one.HookPhase)
		}
		found = append(found, summary{one.ResourceKey.Kind, one.ResourceKey.Name, string(one.HookType), status, one.Message})
	}
	return found
}
