// Command check-kind-config reads a kind configuration as `kind create cluster` would.
//
// kind has no command for that, and its loader is internal to sigs.k8s.io/kind/pkg:
// hence the path of this module, which is never published.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/internal/apis/config"
	"sigs.k8s.io/kind/pkg/internal/apis/config/encoding"
)

func check(path string) (map[config.NodeRole]int, error) {
	cluster, err := encoding.Load(path) // strict: unknown fields are errors
	if err != nil {
		return nil, err
	}
	if cluster.Name == "" {
		cluster.Name = "kind" // what --name gives
	}
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	roles := map[config.NodeRole]int{}
	for _, node := range cluster.Nodes {
		roles[node.Role]++
	}
	return roles, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check-kind-config FILE")
		os.Exit(2)
	}
	roles, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d control plane, %d workers\n",
		os.Args[1], roles[config.ControlPlaneRole], roles[config.WorkerRole])
}
