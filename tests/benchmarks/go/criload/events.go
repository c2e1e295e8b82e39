package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

const (
	subscribeLimit = 20 * time.Second       // until every subscriber has had its first event
	quiet          = 300 * time.Millisecond // no event for so long: all that was published has come
	stalled        = 10 * time.Second       // no event for so long while some are due: they are lost
)

// subscription is one GetContainerEvents stream; it counts what arrives and does not decode it.
type subscription struct {
	received atomic.Int64
	ended    chan error
}

func subscribe(ctx context.Context, c client) (*subscription, error) {
	path := "/" + c.options.service + ".RuntimeService/GetContainerEvents"
	stream, err := c.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return nil, err
	}
	var empty []byte
	if err := errors.Join(stream.SendMsg(&empty), stream.CloseSend()); err != nil {
		return nil, err
	}
	s := &subscription{ended: make(chan error, 1)}
	go func() {
		for {
			var message []byte
			if err := stream.RecvMsg(&message); err != nil {
				s.ended <- err
				return
			}
			s.received.Add(1)
		}
	}()
	return s, nil
}

// audience is all subscriptions.
type audience []*subscription

// lowest is what the slowest subscriber has received.
func (a audience) lowest() int64 {
	counts := a.counts()
	return slices.Min(counts)
}

func (a audience) counts() []int64 {
	counts := make([]int64, len(a))
	for i, s := range a {
		counts[i] = s.received.Load()
	}
	return counts
}

func (a audience) total() (sum int64) {
	for _, count := range a.counts() {
		sum += count
	}
	return sum
}

// alive is an error if a stream has ended: none may while this client listens.
func (a audience) alive() error {
	for i, s := range a {
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("subscriber %d: its stream ended after %d events: %w", i, s.received.Load(), err)
		default:
		}
	}
	return nil
}

// await polls until done, and fails when no event came for `limit`.
func (a audience) await(limit time.Duration, what string, done func() bool) error {
	last, since := a.total(), time.Now()
	for !done() {
		if err := a.alive(); err != nil {
			return err
		}
		if total := a.total(); total != last {
			last, since = total, time.Now()
		} else if time.Since(since) > limit {
			return fmt.Errorf("%s: no event for %s; received by each subscriber: %v", what, limit, a.counts())
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// settle waits until nothing arrives any more.
func (a audience) settle() error {
	last, since := a.total(), time.Now()
	for time.Since(since) < quiet {
		if err := a.alive(); err != nil {
			return err
		}
		if total := a.total(); total != last {
			last, since = total, time.Now()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// publisher makes events by living pods on a connection of its own.
type publisher struct {
	client   client
	imageRef string
	lives    atomic.Int64
}

func (p *publisher) live() error {
	number := int(p.lives.Add(1))
	_, err := p.client.live(3_000_000+number, fmt.Sprintf("events-%d", number), p.imageRef)
	return err
}

// events measures what GetContainerEvents delivers to a number of subscribers while pods come and go.
//
// The publisher waits for the slowest subscriber, as far as the window says, so the figure is what the server can deliver with nothing
// lost; a queue that overflows, an uneven count or a missing event is an error.
func events(o options, clients []client) (map[string]any, error) {
	if o.subscribers < 1 || o.cycles < 1 {
		return nil, errors.New("-subscribers and -cycles must be at least 1")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var listeners audience
	for i := range o.subscribers {
		s, err := subscribe(ctx, clients[i%len(clients)])
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, s)
	}
	own, err := connect(options{socket: o.socket, service: o.service, connections: 1, image: o.image, deadline: o.deadline})
	if err != nil {
		return nil, err
	}
	p := &publisher{client: own[0]}
	if p.imageRef, err = p.client.pull(); err != nil {
		return nil, err
	}
	perLife, err := rehearse(listeners, p)
	if err != nil {
		return nil, err
	}
	base := listeners.counts()
	before, err := readProcess(o.serverPID)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := publish(o, listeners, p, base[0], perLife); err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	after, err := readProcess(o.serverPID)
	if err != nil {
		return nil, err
	}
	if err := listeners.settle(); err != nil {
		return nil, err
	}
	due := int64(o.cycles) * perLife
	for i, count := range listeners.counts() {
		if count-base[i] != due {
			return nil, fmt.Errorf("subscriber %d received %d events, %d were published", i, count-base[i], due)
		}
	}
	deliveries := float64(due) * float64(o.subscribers)
	return map[string]any{
		"subscribers":                o.subscribers,
		"events_per_life":            perLife,
		"published":                  due,
		"seconds":                    seconds,
		"events_per_second":          float64(due) / seconds,
		"deliveries_per_second":      deliveries / seconds,
		"server_cpu_us_per_delivery": (after.cpuSeconds - before.cpuSeconds) / deliveries * 1e6,
		"rss_bytes":                  after.rssBytes,
	}, nil
}

// rehearse lives pods until every subscriber has had an event, then counts what one life publishes.
func rehearse(listeners audience, p *publisher) (int64, error) {
	for begun := time.Now(); listeners.lowest() == 0; {
		if time.Since(begun) > subscribeLimit {
			return 0, fmt.Errorf("no event reached every subscriber within %s; received: %v", subscribeLimit, listeners.counts())
		}
		if err := errors.Join(p.live(), listeners.alive()); err != nil {
			return 0, err
		}
	}
	if err := listeners.settle(); err != nil {
		return 0, err
	}
	before := listeners.counts()
	if err := p.live(); err != nil {
		return 0, err
	}
	if err := listeners.settle(); err != nil {
		return 0, err
	}
	perLife := listeners[0].received.Load() - before[0]
	if perLife == 0 {
		return 0, errors.New("a pod's life published no event")
	}
	for i, count := range listeners.counts() {
		if count-before[i] != perLife {
			return 0, fmt.Errorf("one pod's life gave subscriber 0 %d events and subscriber %d %d", perLife, i, count-before[i])
		}
	}
	return perLife, nil
}

// publish lives o.cycles pods on o.streams streams and returns when every subscriber has all their events.
func publish(o options, listeners audience, p *publisher, base, perLife int64) error {
	var begun atomic.Int64
	var running sync.WaitGroup
	failures := make(chan error, o.streams)
	for range o.streams {
		running.Go(func() {
			for {
				number := begun.Add(1)
				if number > int64(o.cycles) {
					return
				}
				room := func() bool { return number*perLife-(listeners.lowest()-base) <= int64(o.window) }
				err := listeners.await(stalled, "waiting for the slowest subscriber", room)
				if err == nil {
					err = p.live()
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	running.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	due := int64(o.cycles) * perLife
	return listeners.await(stalled, "waiting for the last events", func() bool { return listeners.lowest()-base >= due })
}
