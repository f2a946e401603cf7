// Command kube is etcd, the Kubernetes daemons and kubectl in one binary.
//
// The name it is called by, or else its first argument, selects the program.
// One binary instead of seven: the daemons share nearly all of their code, so
// linking them together takes a fraction of the time and of the disk.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func serve(newCommand func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(newCommand())) }
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // exits with the code of a plugin or of `kubectl diff`
	}
}

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          serve(apiserver.NewAPIServerCommand),
	"kube-controller-manager": serve(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-proxy":              serve(proxy.NewProxyCommand),
	"kubelet":                 serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl":                 runKubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	if programs[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run := programs[name]
	if run == nil {
		names := make([]string, 0, len(programs))
		for known := range programs {
			names = append(names, known)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "kube: no program %q; one of: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	run()
}
