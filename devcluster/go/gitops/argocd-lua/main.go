// Command argocd-lua runs a health or action script on the object of its standard input, as Argo CD would.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sparkdrain.io/devcluster/gitops/argolua"
)

const usage = "usage: argocd-lua health|discovery|action [--param NAME=VALUE]... SCRIPT < OBJECT"

func read(from io.Reader) (map[string]any, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return obj.Object, nil
}

func answer(what, script string, obj map[string]any, params map[string]string) (any, error) {
	switch what {
	case "health":
		health, err := argolua.RunHealth(script, obj)
		if health.Message == argolua.InvalidStatus {
			err = errors.New(argolua.InvalidStatus)
		}
		return health, err
	case "discovery":
		return argolua.RunDiscovery(script, obj)
	case "action":
		return argolua.RunAction(script, obj, params)
	}
	return nil, errors.New(usage)
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New(usage)
	}
	params := map[string]string{}
	flags := flag.NewFlagSet("argocd-lua", flag.ContinueOnError)
	flags.Func("param", "parameter of an action: `NAME=VALUE`", func(given string) error {
		name, value, ok := strings.Cut(given, "=")
		if !ok {
			return errors.New("is not NAME=VALUE")
		}
		params[name] = value
		return nil
	})
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New(usage)
	}
	script, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	obj, err := read(os.Stdin)
	if err != nil {
		return err
	}
	found, err := answer(arguments[0], string(script), obj, params)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	return out.Encode(found)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
