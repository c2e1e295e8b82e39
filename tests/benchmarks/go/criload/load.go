package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// worker does one stream's operations; operate answers how many calls it made.
type worker interface {
	operate(iteration int) (calls int, err error)
	finish() error
}

// repeat is a worker that makes the same call over and over; replies must keep their size, else something was lost.
type repeat struct {
	call func() (int, error)
	size int
}

func (r *repeat) operate(int) (int, error) {
	size, err := r.call()
	if err == nil && size != r.size {
		err = fmt.Errorf("a reply of %d bytes came where %d were expected", size, r.size)
	}
	return 1, err
}

func (r *repeat) finish() error { return nil }

// churner lives pod after pod.
type churner struct {
	client   client
	stream   int
	imageRef string
}

func (c *churner) operate(iteration int) (int, error) {
	return c.client.live(c.stream*1_000_000+iteration, fmt.Sprintf("churn-%d-%d", c.stream, iteration), c.imageRef)
}

func (c *churner) finish() error { return nil }

// mixer changes one container's state and lists all of them, in turn: no list is like the one before it. Its container goes round
// created, running, exited, removed, so that no call ever asks for what is already so.
type mixer struct {
	pod  *pod
	next int
}

func (m *mixer) operate(iteration int) (int, error) {
	if iteration%2 == 0 {
		size, err := m.pod.client.runtime("ListContainers", &cri.ListContainersRequest{}, nil)
		if err == nil && size == 0 {
			err = errors.New("an empty list came")
		}
		return 1, err
	}
	step := []func() error{m.pod.create, m.pod.start, m.pod.stop, m.pod.remove}[m.next%4]
	m.next++
	return 1, step()
}

func (m *mixer) finish() error {
	for m.next%4 != 0 {
		if _, err := m.operate(1); err != nil {
			return err
		}
	}
	return m.pod.end()
}

func newWorkers(o options, clients []client) ([]worker, error) {
	var id string
	if o.mode == "status" || o.mode == "list" || o.mode == "listone" || o.mode == "mixed" {
		if o.pairs < 1 {
			return nil, errors.New("-pairs is missing: say how many containers the server holds")
		}
		reply, err := clients[0].listed(o.pairs)
		if err != nil {
			return nil, err
		}
		id = reply.Containers[len(reply.Containers)/2].Id
	}
	var imageRef string
	if o.mode == "churn" || o.mode == "mixed" {
		var err error
		if imageRef, err = clients[0].pull(); err != nil {
			return nil, err
		}
	}
	workers := make([]worker, o.streams)
	for w := range workers {
		c := clients[w%len(clients)]
		var call func() (int, error)
		switch o.mode {
		case "version":
			call = func() (int, error) { return c.runtime("Version", &cri.VersionRequest{Version: "v1"}, nil) }
		case "status":
			call = func() (int, error) {
				return c.runtime("ContainerStatus", &cri.ContainerStatusRequest{ContainerId: id}, nil)
			}
		case "list":
			call = func() (int, error) { return c.runtime("ListContainers", &cri.ListContainersRequest{}, nil) }
		case "listone":
			call = func() (int, error) {
				return c.runtime("ListContainers", &cri.ListContainersRequest{Filter: &cri.ContainerFilter{Id: id}}, nil)
			}
		case "churn":
			workers[w] = &churner{c, w, imageRef}
			continue
		case "mixed":
			p, err := c.runPod(2_000_000+w, fmt.Sprintf("mixed-%d", w), imageRef)
			if err != nil {
				return nil, err
			}
			workers[w] = &mixer{pod: p}
			continue
		default:
			return nil, fmt.Errorf("unknown mode %q", o.mode)
		}
		size, err := call()
		if err != nil {
			return nil, err
		}
		if size == 0 {
			return nil, errors.New("the reply is empty")
		}
		workers[w] = &repeat{call, size}
	}
	return workers, nil
}

// load keeps all streams busy in a closed loop and measures calls that end within the duration.
func load(o options, clients []client) (map[string]any, error) {
	workers, err := newWorkers(o, clients)
	if err != nil {
		return nil, err
	}
	var stopped, measuring atomic.Bool
	var calls atomic.Int64
	latencies := make([][]time.Duration, len(workers))
	failures := make(chan error, 2*len(workers))
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for iteration := 1; !stopped.Load(); iteration++ {
				start := time.Now()
				made, err := workers[w].operate(iteration)
				if err != nil {
					failures <- err
					return
				}
				if measuring.Load() {
					latencies[w] = append(latencies[w], time.Since(start))
					calls.Add(int64(made))
				}
			}
		})
	}
	failed := func(wait time.Duration) error {
		select {
		case err := <-failures:
			return err
		case <-time.After(wait):
			return nil
		}
	}
	err = failed(o.warmUp)
	serverBefore, serverErr := readProcess(o.serverPID)
	clientBefore, clientErr := readProcess(os.Getpid())
	start := time.Now()
	measuring.Store(true)
	if err == nil {
		err = failed(o.duration)
	}
	stopped.Store(true)
	running.Wait()
	seconds := time.Since(start).Seconds()
	serverAfter, serverErr2 := readProcess(o.serverPID)
	clientAfter, clientErr2 := readProcess(os.Getpid())
	if err == nil {
		err = failed(0)
	}
	if err := errors.Join(err, serverErr, clientErr, serverErr2, clientErr2); err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	made := float64(calls.Load())
	if made == 0 {
		return nil, fmt.Errorf("no call ended within %s", o.duration)
	}
	quantile := quantiles(latencies)
	figures := map[string]any{
		"calls":                  made,
		"calls_per_second":       made / seconds,
		"p50_us":                 quantile(0.50),
		"p99_us":                 quantile(0.99),
		"server_cpu_us_per_call": (serverAfter.cpuSeconds - serverBefore.cpuSeconds) / made * 1e6,
		"client_cpu_us_per_call": (clientAfter.cpuSeconds - clientBefore.cpuSeconds) / made * 1e6,
		"rss_bytes":              serverAfter.rssBytes,
	}
	if r, ok := workers[0].(*repeat); ok {
		figures["reply_bytes"] = r.size
	}
	return figures, nil
}

// quantiles answers a function from a share (0 to 1) to the latency in microseconds that this share of all operations kept below.
func quantiles(latencies [][]time.Duration) func(float64) float64 {
	var all []time.Duration
	for _, some := range latencies {
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return func(share float64) float64 {
		return float64(all[min(int(share*float64(len(all))), len(all)-1)]) / float64(time.Microsecond)
	}
}
