package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	keys = "written/"
	// page is the number of keys that one request reads.
	page = 10000
)

// etcd is a key for each number. Its client uses all members, and goes on with the others when one is away.
type etcd struct{ client *clientv3.Client }

func openEtcd(_ context.Context, urls []string, dial dialer) (store, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: urls, DialTimeout: attemptPatience, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: attemptPatience,
		Logger:      zap.NewNop(), // the report has the failures
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(overTCP(dial))},
	})
	return etcd{client}, err
}

// overTCP dials what gRPC calls an address: a URL or host:port.
func overTCP(dial dialer) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
			address = parsed.Host
		}
		return dial(ctx, "tcp", address)
	}
}

func (e etcd) write(ctx context.Context, number int) error {
	_, err := e.client.Put(ctx, fmt.Sprintf("%s%010d", keys, number), strconv.Itoa(number))
	return err
}

// read reads with a quorum, which is etcd's default.
func (e etcd) read(ctx context.Context, found func(int)) error {
	for from, end := keys, clientv3.GetPrefixRangeEnd(keys); ; {
		var answer *clientv3.GetResponse
		err := persistently(ctx, func(ctx context.Context) (err error) {
			answer, err = e.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
			return err
		})
		if err != nil {
			return err
		}
		for _, pair := range answer.Kvs {
			number, err := strconv.Atoi(string(pair.Value))
			if err != nil || strings.TrimLeft(string(pair.Key[len(keys):]), "0") != strings.TrimLeft(strconv.Itoa(number), "0") {
				return fmt.Errorf("key %s has %q", pair.Key, pair.Value)
			}
			found(number)
			from = string(pair.Key) + "\x00"
		}
		if !answer.More {
			return nil
		}
	}
}

func (e etcd) close() { _ = e.client.Close() }
