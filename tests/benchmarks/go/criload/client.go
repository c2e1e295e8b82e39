package main

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// rawCodec hands message bytes through, so that requests are encoded once by us and replies are not decoded at all.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	return *(message.(*[]byte)), nil
}

func (rawCodec) Unmarshal(received []byte, message any) error {
	target := message.(*[]byte)
	*target = append((*target)[:0], received...)
	return nil
}

// client is one connection.
type client struct {
	connection *grpc.ClientConn
	options    *options
}

func connect(o options) ([]client, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", o.socket)
	}
	clients := make([]client, o.connections)
	for i := range clients {
		connection, err := grpc.NewClient("passthrough:///localhost",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(dial),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			return nil, err
		}
		clients[i] = client{connection, &o}
	}
	return clients, nil
}

// call makes one unary call and answers the size of the reply. The reply is decoded only if out is given.
func (c client) call(service, method string, in, out proto.Message) (int, error) {
	ctx := context.Background()
	if c.options.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.deadline)
		defer cancel()
	}
	request, err := proto.Marshal(in)
	if err != nil {
		return 0, err
	}
	var reply []byte
	path := "/" + c.options.service + "." + service + "/" + method
	if err := c.connection.Invoke(ctx, path, &request, &reply, grpc.ForceCodec(rawCodec{})); err != nil {
		return 0, fmt.Errorf("%s: %w", method, err)
	}
	if out != nil {
		return len(reply), proto.Unmarshal(reply, out)
	}
	return len(reply), nil
}

func (c client) runtime(method string, in, out proto.Message) (int, error) {
	return c.call("RuntimeService", method, in, out)
}

// do makes a call of the runtime service whose reply does not matter.
func (c client) do(method string, in proto.Message) error {
	_, err := c.runtime(method, in, nil)
	return err
}
