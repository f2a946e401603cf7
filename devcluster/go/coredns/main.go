// Command coredns is CoreDNS with the four plugins that cluster DNS needs.
//
// The stock program links every plugin, and with them the SDKs of three clouds.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	// The order of the chain: what stands first sees a query first.
	dnsserver.Directives = []string{"bind", "errors", "cache", "kubernetes"}
	coremain.Run()
}
