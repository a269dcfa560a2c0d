// Command writer writes to etcd or NATS at a fixed rate until its standard input ends. It repeats each write until it is acknowledged, as
// clients of such systems do. At the end it reads back what is stored, and counts the acknowledged writes that are not.
//
//	writer -rate 200 -dns 10.96.0.10:53 etcd URL...
//	writer -rate 500 -dns 10.96.0.10:53 nats URL...
//
// It prints two lines of JSON, each a report: when it has written for a second, and at the end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"
)

// store is a system that acknowledges writes.
type store interface {
	// write returns nil when the system has acknowledged that it keeps this number.
	write(ctx context.Context, number int) error
	// read calls found for every number that the system keeps.
	read(ctx context.Context, found func(number int)) error
	close()
}

// systems open a store by its kind.
var systems = map[string]func(ctx context.Context, urls []string, dial dialer) (store, error){
	"etcd": openEtcd,
	"nats": openNATS,
}

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	rate := flag.Int("rate", 200, "writes a second")
	dns := flag.String("dns", "", "the `address` of the DNS server for the URLs; by default that of this machine")
	flag.Parse()
	if err := run(context.Background(), *rate, *dns, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rate int, dns string, arguments []string) error {
	if len(arguments) < 2 || systems[arguments[0]] == nil {
		return errors.New("the arguments are etcd or nats, and the URLs of its members")
	}
	in, err := systems[arguments[0]](ctx, arguments[1:], dialerOf(dns))
	if err != nil {
		return err
	}
	defer in.close()
	l := start(ctx, in, rate)
	go l.tellStart(os.Stdout)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	told, err := l.end(ctx)
	if err != nil {
		return err
	}
	return told.print(os.Stdout)
}

// report is what was written so far.
type report struct {
	Acknowledged int `json:"acknowledged"`
	// Lost are the acknowledged writes that were not read back. It is known at the end.
	Lost     int   `json:"lost"`
	LostSome []int `json:"lostSome,omitempty"`
	// Repeated are the attempts that were not acknowledged.
	Repeated int      `json:"repeated"`
	Failures []string `json:"failures,omitempty"` // the first few
	// Seconds is how long it wrote, and Gap the longest time without an acknowledgement.
	Seconds float64 `json:"seconds"`
	Gap     float64 `json:"gap"`
	// GapAfter is the time from the first write to the beginning of that gap.
	GapAfter float64 `json:"gapAfter"`
}

func (r report) print(to io.Writer) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(to, "%s\n", line)
	}
	return err
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialerOf returns a dialer that asks a DNS server of its own, so that a process outside of the cluster can use the names of pods.
func dialerOf(dns string) dialer {
	d := &net.Dialer{Timeout: attemptPatience}
	if dns != "" {
		d.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, dns)
		}}
	}
	return d.DialContext
}
