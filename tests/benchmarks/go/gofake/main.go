// gofake serves upstream's own fake runtime (k8s.io/cri-client/pkg/fake) on a unix socket: the peer that benchmarks measure against.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cri-client/pkg/fake"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gofake unix:///path/to.sock")
		os.Exit(2)
	}
	server := fake.NewFakeRemoteRuntime()
	if err := server.Start(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
	server.Stop()
}
