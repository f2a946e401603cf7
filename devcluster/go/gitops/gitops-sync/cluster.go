package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sparkdrain.io/devcluster/gitops/argolua"
)

const (
	// One of the two ways in which Argo CD marks what belongs to an application.
	trackingLabel = "app.kubernetes.io/instance"
	interval      = 250 * time.Millisecond
)

type manifests []*unstructured.Unstructured
type liveObjects map[kube.ResourceKey]*unstructured.Unstructured

// target is where the manifests go and what is there.
type target struct {
	config      *rest.Config
	namespace   string
	instance    string
	propagation metav1.DeletionPropagation
	health      health.HealthOverride
	kubectl     kube.Kubectl
	cache       cache.ClusterCache
}

func connect(o options) (*target, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	belongs := func(obj *unstructured.Unstructured, _ bool) (any, bool) {
		mine := obj.GetLabels()[trackingLabel] == o.instance
		return mine, mine
	}
	live := cache.NewClusterCache(config, cache.SetKubectl(kubectl), cache.SetLogr(logr.Discard()),
		cache.SetNamespaces([]string{o.namespace}), cache.SetPopulateResourceInfoHandler(belongs))
	if err := live.EnsureSynced(); err != nil {
		return nil, fmt.Errorf("namespace %s: %w", o.namespace, err)
	}
	propagation := metav1.DeletePropagationForeground
	if o.background {
		propagation = metav1.DeletePropagationBackground
	}
	return &target{config, o.namespace, o.instance, propagation, scripts(o.scripts), kubectl, live}, nil
}

// live returns the objects that belong to the application, and those of the manifests that exist.
func (t *target) live(wanted manifests) (liveObjects, error) {
	return t.cache.GetManagedLiveObjs(wanted, func(r *cache.Resource) bool { return r.Info == true })
}

func (t *target) delete(ctx context.Context, obj *unstructured.Unstructured) error {
	how := metav1.DeleteOptions{PropagationPolicy: &t.propagation}
	return t.kubectl.DeleteResource(ctx, t.config, obj.GroupVersionKind(), obj.GetName(), obj.GetNamespace(), how)
}

// read returns all objects of a folder, as they are sent to the API server.
func (t *target) read(folder string) (manifests, error) {
	var found manifests
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := kube.SplitYAML(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found = append(found, objects...)
		return nil
	})
	for _, obj := range found {
		obj.SetNamespace(t.namespace)
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[trackingLabel] = t.instance
		obj.SetLabels(labels)
	}
	return found, err
}

// scripts is a folder with a health.lua per kind.
type scripts string

// GetResourceHealth is how the engine asks; nil leaves the answer to the engine's own checks.
func (s scripts) GetResourceHealth(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	script, err := os.ReadFile(filepath.Join(string(s), obj.GetKind(), "health.lua"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := argolua.RunHealth(string(script), obj.Object)
	if err != nil {
		return nil, err
	}
	return &health.HealthStatus{Status: health.HealthStatusCode(found.Status), Message: found.Message}, nil
}
