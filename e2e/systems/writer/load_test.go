package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
)

// memory keeps numbers in memory. It refuses some attempts, and forgets some numbers.
type memory struct {
	mutex    sync.Mutex
	kept     map[int]bool
	attempts map[int]int
	refused  func(number, attempt int) bool
	forgets  []int
}

func (m *memory) write(_ context.Context, number int) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.attempts[number]++
	if m.refused(number, m.attempts[number]) {
		return errors.New("refused")
	}
	m.kept[number] = true
	return nil
}

func (m *memory) read(_ context.Context, found func(int)) error {
	for number := range m.kept {
		if !slices.Contains(m.forgets, number) {
			found(number)
		}
	}
	return nil
}

func (*memory) close() {}

// written writes for as long as a second's writes take, and returns the report.
func written(t *testing.T, in store) report {
	t.Helper()
	l := start(t.Context(), in, 500)
	l.tellStart(io.Discard)
	told, err := l.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if told.Acknowledged < 500 {
		t.Errorf("only %d writes were acknowledged", told.Acknowledged)
	}
	return told
}

func newMemory(forgets ...int) *memory {
	return &memory{kept: map[int]bool{}, attempts: map[int]int{}, forgets: forgets, refused: func(int, int) bool { return false }}
}

func TestNothingLost(t *testing.T) {
	if told := written(t, newMemory()); told.Lost != 0 || told.Repeated != 0 {
		t.Errorf("%+v", told)
	}
}

func TestLossIsFound(t *testing.T) {
	if told := written(t, newMemory(7, 3)); told.Lost != 2 || !slices.Equal(told.LostSome, []int{3, 7}) {
		t.Errorf("%+v", told)
	}
}

// TestRefusedWritesAreRepeated checks that every second attempt is made, and counted once.
func TestRefusedWritesAreRepeated(t *testing.T) {
	m := newMemory()
	m.refused = func(number, attempt int) bool { return number%10 == 0 && attempt == 1 }
	if told := written(t, m); told.Lost != 0 || told.Repeated < 50 || len(told.Failures) != listed {
		t.Errorf("%+v", told)
	}
}
