// Command gitops-sync synchronizes a namespace with a folder of manifests, by Argo CD's own engine, or deletes what it synchronized.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/argoproj/gitops-engine/pkg/sync/common"
)

const (
	exitFailed  = 1
	exitUsage   = 2
	exitTimeout = 3
)

type options struct {
	delete     bool
	kubeconfig string
	namespace  string
	instance   string
	scripts    string
	revision   string
	skipHooks  bool
	only       map[string]bool
	prune      bool
	background bool
	orphan     bool
	timeout    time.Duration
	folder     string
}

func parse(arguments []string) (options, error) {
	o := options{only: map[string]bool{}}
	if len(arguments) > 0 && arguments[0] == "delete" {
		o.delete, arguments = true, arguments[1:]
	}
	flags := flag.NewFlagSet("gitops-sync [delete]", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "of the cluster")
	flags.StringVar(&o.namespace, "namespace", "", "of all objects")
	flags.StringVar(&o.instance, "label", "gitops-sync", "what "+trackingLabel+" says of objects that belong to the application")
	flags.StringVar(&o.scripts, "health", "", "folder with <Kind>/health.lua")
	flags.StringVar(&o.revision, "revision", "", "commit of the manifests")
	flags.BoolVar(&o.skipHooks, "skip-hooks", false, "apply the manifests only")
	flags.Func("only", "`KIND/NAME` to synchronize, as self-heal does: without hooks; can be repeated", func(name string) error {
		o.only[name] = true
		return nil
	})
	flags.BoolVar(&o.prune, "prune", false, "delete what belongs to the application and is not in the folder")
	flags.BoolVar(&o.background, "background", false, "let the garbage collector delete dependents afterwards")
	flags.BoolVar(&o.orphan, "orphan", false, "leave the resources, as a deletion that does not cascade")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to go on")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() != 1 || o.namespace == "" {
		return o, fmt.Errorf("usage: gitops-sync [delete] --kubeconfig FILE --namespace NAME --health FOLDER [OPTION]... MANIFESTS")
	}
	o.folder = flags.Arg(0)
	return o, nil
}

func run(o options) (result, error) {
	there, err := connect(o)
	if err != nil {
		return result{}, err
	}
	wanted, err := there.read(o.folder)
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	if o.delete {
		return there.remove(ctx, wanted, o.orphan)
	}
	return there.synchronize(ctx, wanted, o)
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	}
	outcome, err := run(o)
	if err != nil {
		outcome.Phase, outcome.Message = common.OperationError, err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		panic(err)
	}
	switch {
	case outcome.Phase == common.OperationSucceeded:
	case outcome.Phase.Completed():
		os.Exit(exitFailed)
	default:
		os.Exit(exitTimeout)
	}
}
