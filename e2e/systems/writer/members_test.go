package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.etcd.io/etcd/server/v3/embed"
)

// underRestarts writes while each of three members is stopped and started in turns. That is what an update does, without Kubernetes.
func underRestarts(t *testing.T, kind string, rate int, urls []string, restart func(member int)) {
	t.Helper()
	in, err := systems[kind](t.Context(), urls, (&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.close)
	l := start(t.Context(), in, rate)
	l.tellStart(io.Discard)
	for number := range urls {
		restart(number)
	}
	told, err := l.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", told)
	if told.Lost != 0 {
		t.Errorf("%d acknowledged writes are lost", told.Lost)
	}
}

// free returns as many free ports of this machine.
func free(t *testing.T, count int) []int {
	t.Helper()
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func TestEtcd(t *testing.T) {
	folder, ports := t.TempDir(), free(t, 6)
	at := func(port int) []url.URL { return []url.URL{{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}} }
	var urls, cluster []string
	for number := range 3 {
		urls = append(urls, at(ports[number])[0].String())
		cluster = append(cluster, fmt.Sprintf("m%d=%s", number, &at(ports[3+number])[0]))
	}
	running := make([]*embed.Etcd, 3)
	run := func(number int) {
		c := embed.NewConfig()
		c.Name, c.Dir, c.LogLevel = fmt.Sprintf("m%d", number), filepath.Join(folder, fmt.Sprint(number)), "fatal"
		c.ListenClientUrls, c.AdvertiseClientUrls = at(ports[number]), at(ports[number])
		c.ListenPeerUrls, c.AdvertisePeerUrls = at(ports[3+number]), at(ports[3+number])
		c.InitialCluster = strings.Join(cluster, ",")
		started, err := embed.StartEtcd(c)
		if err != nil {
			t.Fatal(err)
		}
		running[number] = started
	}
	for number := range running {
		run(number)
	}
	t.Cleanup(func() {
		for _, each := range running {
			each.Close()
		}
	})
	for _, each := range running {
		<-each.Server.ReadyNotify()
	}
	underRestarts(t, "etcd", 200, urls, func(number int) {
		running[number].Close()
		run(number)
		<-running[number].Server.ReadyNotify()
	})
}

func TestNATS(t *testing.T) {
	folder, ports := t.TempDir(), free(t, 9)
	var urls, routes []string
	for number := range 3 {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[number]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+number]))
	}
	running := make([]*server.Server, 3)
	run := func(number int) {
		started, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("m%d", number), Host: "127.0.0.1", Port: ports[number], NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(folder, fmt.Sprint(number)), Routes: server.RoutesFromStr(strings.Join(routes, ",")),
			Cluster:  server.ClusterOpts{Name: "nats", Host: "127.0.0.1", Port: ports[3+number]},
			HTTPHost: "127.0.0.1", HTTPPort: ports[6+number],
		})
		if err != nil {
			t.Fatal(err)
		}
		started.Start()
		running[number] = started
	}
	stop := func(number int) {
		running[number].Shutdown()
		running[number].WaitForShutdown()
	}
	for number := range running {
		run(number)
	}
	t.Cleanup(func() {
		for number := range running {
			stop(number)
		}
	})
	serving := func(number int) {
		healthy := fmt.Sprintf("http://127.0.0.1:%d/healthz", ports[6+number])
		eventually(t, "m"+strconv.Itoa(number)+" to have caught up", func() bool { return answers(healthy) })
	}
	for number := range running {
		serving(number)
	}
	underRestarts(t, "nats", 500, urls, func(number int) {
		stop(number)
		run(number)
		serving(number)
	})
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	return response.StatusCode == http.StatusOK && response.Body.Close() == nil
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
