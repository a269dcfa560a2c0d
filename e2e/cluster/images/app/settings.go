package main

import (
	"fmt"
	"os"
	"time"
)

type settings struct {
	version    string
	port       string
	tlsDir     string
	crash      bool
	startDelay time.Duration
	readyDelay time.Duration
	stopDelay  time.Duration
}

func settingsFromEnvironment() (settings, error) {
	s := settings{
		version: os.Getenv("VERSION"),
		port:    "8080",
		tlsDir:  os.Getenv("TLS_DIR"),
		crash:   os.Getenv("CRASH") != "",
	}
	if port := os.Getenv("PORT"); port != "" {
		s.port = port
	}
	for name, delay := range map[string]*time.Duration{
		"START_DELAY": &s.startDelay, "READY_DELAY": &s.readyDelay, "STOP_DELAY": &s.stopDelay,
	} {
		if err := parseDelay(name, delay); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

// parseDelay reads the environment variable name into delay, which stays 0 where the variable is not set.
func parseDelay(name string, delay *time.Duration) error {
	value := os.Getenv(name)
	if value == "" {
		return nil
	}
	parsed, err := time.ParseDuration(value)
	if err != nil {
		return fmt.Errorf("%s=%s is not a duration like 500ms or 2s", name, value)
	}
	*delay = parsed
	return nil
}
