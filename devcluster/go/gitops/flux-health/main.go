// Command flux-health computes the status that Flux gives to the object of its standard input, by the healthCheckExprs of a Kustomization.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

type kustomization struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
	} `json:"spec"`
}

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func expressions(path string) ([]kustomize.CustomHealthCheck, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []kustomize.CustomHealthCheck
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var document kustomization
		switch err := documents.Decode(&document); {
		case errors.Is(err, io.EOF) && len(found) == 0:
			return nil, fmt.Errorf("%s: no Kustomization of Flux with healthCheckExprs", path)
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if document.Kind == "Kustomization" && document.APIVersion == "kustomize.toolkit.fluxcd.io/v1" {
			found = append(found, document.Spec.HealthCheckExprs...)
		}
	}
}

func compute(checks []kustomize.CustomHealthCheck, obj *unstructured.Unstructured) (answer, error) {
	newReader, err := cel.NewStatusReader(checks)
	if err != nil {
		return answer{}, err
	}
	reader := newReader(nil)
	if !reader.Supports(obj.GroupVersionKind().GroupKind()) {
		computed, err := status.Compute(obj)
		if err != nil {
			return answer{}, err
		}
		return answer{computed.Status.String(), computed.Message}, nil
	}
	read, err := reader.ReadStatusForObject(context.Background(), nil, obj)
	if err != nil {
		return answer{}, err
	}
	if read.Error != nil {
		// Not the end for Flux: it waits for another status until its timeout.
		return answer{read.Status.String(), read.Error.Error()}, nil
	}
	return answer{read.Status.String(), read.Message}, nil
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("usage: flux-health KUSTOMIZATION < OBJECT")
	}
	checks, err := expressions(arguments[0])
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	if err := utilyaml.NewYAMLOrJSONDecoder(os.Stdin, 4096).Decode(obj); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	computed, err := compute(checks, obj)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	return out.Encode(computed)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
