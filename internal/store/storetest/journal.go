package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// Journal is the part of a store that a runner needs, and how a run gets into it.
type Journal interface {
	Create(ctx context.Context, run store.Run, events ...engine.Event) error
	Append(ctx context.Context, uid string, from int, events []engine.Event) error
	Events(ctx context.Context, uid string) ([]engine.Event, error)
	EventsFrom(ctx context.Context, uid string, from int) ([]engine.Event, error)
	SaveState(ctx context.Context, uid string, n int, state []byte) error
	LoadState(ctx context.Context, uid string) (n int, state []byte, err error)
}

// RunJournal runs the part of the suite that every journal passes, whatever keeps the runs. open gives a new, empty one.
func RunJournal(t *testing.T, open func(t *testing.T) Journal) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Journal){
		"journal":                         testJournal,
		"journal refuses taken positions": testJournalConflict,
		"journal of many writers":         testJournalRace,
		"snapshots":                       testSnapshot,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func note(i int) engine.Event {
	return engine.Event{
		Time: epoch.Add(time.Duration(i) * time.Millisecond), Seed: 1<<63 + uint64(i),
		Noted: &engine.Noted{Node: engine.NodeID(i), Message: fmt.Sprintf("note %d \u2713", i)},
	}
}

func notes(from, to int) []engine.Event {
	var out []engine.Event
	for i := from; i < to; i++ {
		out = append(out, note(i))
	}
	return out
}

func testJournal(t *testing.T, s Journal) {
	create(t, s, run(1), notes(0, 1)...)
	create(t, s, run(2))
	uid := run(1).UID
	for _, to := range [][2]int{{1, 2}, {2, 2}, {2, 500}, {500, 501}} {
		if err := s.Append(t.Context(), uid, to[0], notes(to[0], to[1])); err != nil {
			t.Fatalf("Append(%d..%d): %v", to[0], to[1], err)
		}
	}
	got, err := s.Events(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(notes(0, 501), got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if got, err = s.EventsFrom(t.Context(), uid, 498); err != nil || cmp.Diff(notes(498, 501), got) != "" {
		t.Errorf("EventsFrom(498) = %v, %v", got, err)
	}
	if got, err = s.Events(t.Context(), run(2).UID); err != nil || len(got) != 0 {
		t.Errorf("the other run has %v, %v", got, err)
	}
	if err := s.Append(t.Context(), "none", 0, notes(0, 1)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Append to a missing run: %v, want ErrNotFound", err)
	}
}

func testJournalConflict(t *testing.T, s Journal) {
	create(t, s, run(1), notes(0, 3)...)
	uid := run(1).UID
	for _, from := range []int{0, 2, 4} {
		if err := s.Append(t.Context(), uid, from, notes(0, 100)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Append at %d of 3: %v, want ErrConflict", from, err)
		}
	}
	if got, err := s.Events(t.Context(), uid); err != nil || cmp.Diff(notes(0, 3), got) != "" {
		t.Errorf("after refusals the journal is %v, %v", got, err)
	}
}

func testJournalRace(t *testing.T, s Journal) {
	create(t, s, run(1))
	uid := run(1).UID
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		wg.Go(func() {
			for from := range 20 {
				err := s.Append(t.Context(), uid, from, notes(from, from+1))
				if err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				} else if !errors.Is(err, store.ErrConflict) {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Events(t.Context(), uid)
	if err != nil || won != len(got) {
		t.Errorf("%d appends succeeded, %d events are there, %v", won, len(got), err)
	}
}

func testSnapshot(t *testing.T, s Journal) {
	create(t, s, run(1))
	uid := run(1).UID
	if n, _, err := s.LoadState(t.Context(), uid); err != nil || n != 0 {
		t.Errorf("before any: %d, %v", n, err)
	}
	for n, want := range []string{"", "one", "two"} {
		if err := s.SaveState(t.Context(), uid, n, []byte(want)); err != nil {
			t.Fatal(err)
		}
		gotN, got, err := s.LoadState(t.Context(), uid)
		if err != nil || gotN != n || string(got) != want {
			t.Errorf("LoadState = %d, %q, %v, want %d, %q", gotN, got, err, n, want)
		}
	}
	if err := s.SaveState(t.Context(), "none", 1, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("state of a missing run: %v, want ErrNotFound", err)
	}
}
