package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	stream  = "written"
	members = 3
	// connections is the number of clients. Each is connected to one server at a time.
	connections = 3
)

// streamStore is a JetStream stream with three replicas on disk, and a message for each number. A publish is acknowledged when a majority
// has it.
type streamStore struct {
	connected []*nats.Conn
	clients   []jetstream.JetStream
}

func openNATS(ctx context.Context, urls []string, dial dialer) (store, error) {
	var s streamStore
	for range connections {
		connected, err := nats.Connect(strings.Join(urls, ","), nats.SetCustomDialer(natsDialer{dial}), nats.SkipHostLookup(),
			nats.MaxReconnects(-1), nats.ReconnectWait(pause), nats.Timeout(attemptPatience), nats.RetryOnFailedConnect(true),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the report has the failures
		if err != nil {
			return nil, err
		}
		client, err := jetstream.New(connected)
		if err != nil {
			return nil, err
		}
		s.connected, s.clients = append(s.connected, connected), append(s.clients, client)
	}
	return s, s.create(ctx)
}

// create creates the stream, which may take a moment after the servers have become ready.
func (s streamStore) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*attemptPatience)
	defer cancel()
	return persistently(ctx, func(ctx context.Context) error {
		_, err := s.clients[0].CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{stream}, Storage: jetstream.FileStorage, Replicas: members})
		return err
	})
}

// write gives each message an ID, so that a repeated one is kept once.
func (s streamStore) write(ctx context.Context, number int) error {
	text := strconv.Itoa(number)
	_, err := s.clients[number%connections].Publish(ctx, stream, []byte(text), jetstream.WithMsgID(text), jetstream.WithRetryAttempts(0))
	return err
}

// read reads the whole stream in its order.
func (s streamStore) read(ctx context.Context, found func(int)) error {
	var of jetstream.Stream
	var consumer jetstream.Consumer
	err := persistently(ctx, func(ctx context.Context) (err error) {
		if of, err = s.clients[0].Stream(ctx, stream); err == nil {
			consumer, err = of.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
		}
		return err
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for last := of.CachedInfo().State.LastSeq; last > 0; {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(string(message.Data()))
		if err != nil {
			return fmt.Errorf("a message is %q", message.Data())
		}
		found(number)
		meta, err := message.Metadata()
		if err != nil || meta.Sequence.Stream >= last {
			return err
		}
	}
	return nil
}

func (s streamStore) close() {
	for _, each := range s.connected {
		each.Close()
	}
}

type natsDialer struct{ dial dialer }

func (d natsDialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptPatience)
	defer cancel()
	return d.dial(ctx, network, address)
}
