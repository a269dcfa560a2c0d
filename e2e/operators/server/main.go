// Command server stands in for Prometheus, which compiles for many minutes. It answers every request, whatever its arguments are.
package main

import (
	"log"
	"net/http"
	"time"
)

func main() {
	answer := func(http.ResponseWriter, *http.Request) {}
	server := &http.Server{Addr: ":9090", Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
