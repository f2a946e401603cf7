package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/sync/hook"
	"github.com/argoproj/gitops-engine/pkg/sync/syncwaves"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const preDelete = "PreDelete"

func isPreDelete(obj *unstructured.Unstructured) bool {
	for _, name := range strings.Split(obj.GetAnnotations()[common.AnnotationKeyHook], ",") {
		if strings.TrimSpace(name) == preDelete {
			return true
		}
	}
	return false
}

// remove deletes an application with its resources. PreDelete hooks are no part of the engine: this does what Argo CD's controller does since
// 3.3 (controller/hook.go, executeHooks and cleanupHooks), with its limits. Only Progressing holds a deletion and only Degraded refuses it;
// Suspended and Unknown let it go on, and so does a hook that was there before. A hook that failed is deleted, for the controller's next
// try; here a failure is the end. With orphan, the resources stay.
func (t *target) remove(ctx context.Context, wanted manifests, orphan bool) (result, error) {
	outcome := result{Phase: common.OperationRunning}
	steps := []func(context.Context, manifests, liveObjects, *result) (bool, error){t.runHooks, t.deleteAll, t.cleanUpHooks}
	if orphan {
		steps = slices.Delete(steps, 1, 2)
	}
	for {
		live, err := t.live(nil)
		if err != nil {
			return outcome, err
		}
		done, err := steps[0](ctx, wanted, live, &outcome)
		if err != nil || outcome.Phase.Completed() {
			return outcome, err
		}
		if done {
			if steps = steps[1:]; len(steps) == 0 {
				outcome.Phase, outcome.Message = common.OperationSucceeded, "all resources are deleted"
				return outcome, nil
			}
			continue
		}
		select {
		case <-ctx.Done():
			return outcome, nil
		case <-time.After(interval):
		}
	}
}

// runHooks makes what is missing of the hooks and says whether all of them have ended well.
func (t *target) runHooks(ctx context.Context, wanted manifests, live liveObjects, outcome *result) (bool, error) {
	for _, obj := range wanted {
		if _, exists := live[kube.GetResourceKey(obj)]; exists || !isPreDelete(obj) {
			continue
		}
		_, err := t.kubectl.CreateResource(ctx, t.config, obj.GroupVersionKind(), obj.GetName(), obj.GetNamespace(), obj, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err
		}
		outcome.Message = fmt.Sprintf("created hook %s/%s", obj.GetKind(), obj.GetName())
		return false, nil
	}
	outcome.Resources = nil
	var running, failed []string
	for _, obj := range live {
		if !isPreDelete(obj) {
			continue
		}
		found, err := t.healthOf(obj)
		if err != nil {
			return false, err
		}
		name := obj.GetKind() + "/" + obj.GetName()
		switch found.Status {
		case health.HealthStatusProgressing:
			running = append(running, name)
		case health.HealthStatusDegraded:
			failed = append(failed, name)
			if err := t.delete(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		outcome.Resources = append(outcome.Resources, summary{obj.GetKind(), obj.GetName(), preDelete, string(found.Status), found.Message})
	}
	if len(failed) > 0 {
		outcome.Phase = common.OperationFailed
		outcome.Message = fmt.Sprintf("%s hook(s) failed: %s", preDelete, strings.Join(failed, ", "))
	} else if len(running) > 0 {
		outcome.Message = "waiting for completion of hook " + strings.Join(running, ", ")
	}
	return len(failed)+len(running) == 0, nil
}

// deleteAll deletes the objects of the highest wave that is left; an object that is being deleted is waited for.
func (t *target) deleteAll(ctx context.Context, _ manifests, live liveObjects, outcome *result) (bool, error) {
	var objects manifests
	for _, obj := range live {
		if !isPreDelete(obj) {
			objects = append(objects, obj)
		}
	}
	if len(objects) == 0 {
		return true, nil
	}
	outcome.Message = fmt.Sprintf("waiting for deletion of %s/%s", objects[0].GetKind(), objects[0].GetName())
	if slices.ContainsFunc(objects, func(obj *unstructured.Unstructured) bool { return obj.GetDeletionTimestamp() != nil }) {
		return false, nil
	}
	highest := slices.MaxFunc(objects, func(a, b *unstructured.Unstructured) int { return syncwaves.Wave(a) - syncwaves.Wave(b) })
	for _, obj := range objects {
		if syncwaves.Wave(obj) != syncwaves.Wave(highest) {
			continue
		}
		if err := t.delete(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
			outcome.Phase, outcome.Message = common.OperationFailed, err.Error()
			return false, nil
		}
	}
	return false, nil
}

// cleanUpHooks deletes the hooks that are to be deleted when they have succeeded; BeforeHookCreation means nothing here, as in Argo CD.
func (t *target) cleanUpHooks(ctx context.Context, _ manifests, live liveObjects, _ *result) (bool, error) {
	done := true
	for _, obj := range live {
		if !isPreDelete(obj) || !slices.Contains(hook.DeletePolicies(obj), common.HookDeletePolicyHookSucceeded) {
			continue
		}
		found, err := t.healthOf(obj)
		if err != nil {
			return false, err
		}
		if found.Status != health.HealthStatusHealthy {
			continue
		}
		done = false
		if err := t.delete(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return done, nil
}

func (t *target) healthOf(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	found, err := health.GetResourceHealth(obj, t.health)
	if err == nil && found == nil {
		found = &health.HealthStatus{Status: health.HealthStatusHealthy}
	}
	return found, err
}
