// criload is a load client for Container Runtime Interface servers on a unix socket.
//
// Each mode prints one JSON object and exits with 0. Whatever makes a figure meaningless (a failed call, an empty or short list, no event,
// a server process that cannot be read) ends the program with a message and status 1, so that a table is never filled with wrong numbers.
//
// Replies are not decoded while time is taken: the client's own decoding would hide the server.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the command line, one place for all modes.
type options struct {
	socket      string
	mode        string
	service     string
	streams     int
	connections int
	duration    time.Duration
	warmUp      time.Duration
	deadline    time.Duration
	serverPID   int
	from        int
	pairs       int
	image       string
	subscribers int
	cycles      int
	window      int
}

func parseOptions() options {
	var o options
	flag.StringVar(&o.socket, "sock", "", "path of the server's unix socket")
	flag.StringVar(&o.mode, "mode", "version", "populate | version | status | list | listone | mixed | churn | events")
	flag.StringVar(&o.service, "package", "runtime.v1", "protobuf package that names the services: runtime.v1 or runtime.v1alpha2")
	flag.IntVar(&o.streams, "streams", 1, "calls in flight at a time")
	flag.IntVar(&o.connections, "connections", 1, "connections that the streams share")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "time during which calls count")
	flag.DurationVar(&o.warmUp, "warm-up", 300*time.Millisecond, "time before that during which they do not")
	flag.DurationVar(&o.deadline, "deadline", 0, "deadline of each call, sent as grpc-timeout; 0 sends none")
	flag.IntVar(&o.serverPID, "pid", 0, "process id of the server, for its CPU time and memory")
	flag.IntVar(&o.from, "from", 0, "populate: number of the first sandbox to make")
	flag.IntVar(&o.pairs, "pairs", 0, "sandbox + container pairs: populate makes them up to this number, lists must show exactly this many")
	flag.StringVar(&o.image, "image", "registry.example.test/team/web:1.0", "image that the containers use; it is pulled first")
	flag.IntVar(&o.subscribers, "subscribers", 1, "events: number of GetContainerEvents streams")
	flag.IntVar(&o.cycles, "cycles", 500, "events: sandbox lives to publish")
	flag.IntVar(&o.window, "window", 256, "events: how far the publisher may be ahead of the slowest subscriber, in events")
	flag.Parse()
	return o
}

func main() {
	o := parseOptions()
	figures, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "criload: %s: %v\n", o.mode, err)
		os.Exit(1)
	}
	figures["mode"] = o.mode
	figures["streams"] = o.streams
	figures["pairs"] = o.pairs
	if err := json.NewEncoder(os.Stdout).Encode(figures); err != nil {
		fmt.Fprintf(os.Stderr, "criload: cannot print the figures: %v\n", err)
		os.Exit(1)
	}
}

func run(o options) (map[string]any, error) {
	if o.socket == "" {
		return nil, fmt.Errorf("-sock is missing: name the server's unix socket")
	}
	if o.streams < 1 || o.connections < 1 {
		return nil, fmt.Errorf("-streams and -connections must be at least 1")
	}
	clients, err := connect(o)
	if err != nil {
		return nil, err
	}
	switch o.mode {
	case "populate":
		return populate(o, clients)
	case "events":
		return events(o, clients)
	}
	return load(o, clients)
}
