// Package storetest is the suite that every implementation of [store.Store] passes.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// Run runs the suite. open gives a new, empty store; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, store.Store){
		"a run comes back as it was created": testCreateGet,
		"find by name, UID and beginning":    testFind,
		"list filters":                       testListFilters,
		"list pages":                         testListPages,
		"status":                             testStatus,
		"delete":                             testDelete,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			test(t, s)
		})
	}
	RunJournal(t, func(t *testing.T) Journal {
		s := open(t)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return s
	})
}

var epoch = time.Date(2026, 9, 1, 12, 0, 0, 123456789, time.UTC)

func run(i int) store.Run {
	return store.Run{
		UID: fmt.Sprintf("0198%04d-aaaa", i), Name: fmt.Sprintf("run-%d", i), Namespace: "default", Language: "argo",
		Created: epoch.Add(time.Duration(i) * time.Minute), Status: store.Status{Phase: engine.Pending},
	}
}

func create(t *testing.T, s Journal, r store.Run, events ...engine.Event) {
	t.Helper()
	if err := s.Create(t.Context(), r, events...); err != nil {
		t.Fatalf("Create(%s): %v", r.UID, err)
	}
}

func testCreateGet(t *testing.T, s store.Store) {
	want := run(1)
	want.Labels = map[string]string{"team": "ml", "a.b/c": "d\"e"}
	want.File = "dir/manifest.yaml"
	want.Status = store.Status{
		Phase: engine.RunningPhase, Message: "so far", Started: epoch, Finished: epoch.Add(time.Hour),
		Summary: store.Summary{Tasks: 3, Done: 2, Reused: 1, Suspended: true},
	}
	want.Submission = store.Submission{
		Documents: []store.Document{{Name: "manifest.yaml", Data: []byte("kind: Workflow\n\x00\xff")}},
		Hooks:     []store.Document{{Name: "hooks.yaml", Data: []byte("kind: TaskHook")}},
		Args:      []byte(`{"parameters":{"a":"b"}}`),
	}
	create(t, s, want)
	got, err := s.Get(t.Context(), want.UID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the run changed (-created +got):\n%s", d)
	}
	if err := s.Create(t.Context(), want); err == nil {
		t.Error("a second run with the same UID was accepted")
	}
	if _, err := s.Get(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of a missing run: %v, want ErrNotFound", err)
	}
}

func testFind(t *testing.T, s store.Store) {
	if _, err := s.Find(t.Context(), "@latest"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("@latest of an empty store: %v, want ErrNotFound", err)
	}
	for i := range 3 {
		r := run(i)
		r.Name = "same"
		create(t, s, r)
	}
	other := run(7)
	other.UID = "ffff-1"
	create(t, s, other)
	for ref, want := range map[string]string{
		"same": run(2).UID, run(1).UID: run(1).UID, "01980001": run(1).UID, "ffff": "ffff-1", "@latest": "ffff-1", "run-7": "ffff-1",
	} {
		if got, err := s.Find(t.Context(), ref); err != nil || got != want {
			t.Errorf("Find(%q) = %q, %v, want %q", ref, got, err, want)
		}
	}
	for ref, want := range map[string]error{"0198": store.ErrAmbiguous, "fff": store.ErrNotFound, "nothing": store.ErrNotFound, "%": store.ErrNotFound} {
		if got, err := s.Find(t.Context(), ref); !errors.Is(err, want) {
			t.Errorf("Find(%q) = %q, %v, want %v", ref, got, err, want)
		}
	}
}

func uids(runs []store.Run) []string {
	out := []string{}
	for _, r := range runs {
		out = append(out, r.UID)
	}
	return out
}

func testListFilters(t *testing.T, s store.Store) {
	for i := range 6 {
		r := run(i)
		r.Labels = map[string]string{"n": fmt.Sprint(i % 2), "a.b/c": "x"}
		if i > 3 {
			r.Language, r.Namespace, r.Phase, r.Labels = "kfp", "team", engine.FailedPhase, nil
		}
		create(t, s, r)
	}
	want := func(is ...int) []string {
		out := []string{}
		for _, i := range is {
			out = append(out, run(i).UID)
		}
		return out
	}
	for name, c := range map[string]struct {
		filter store.Filter
		want   []string
	}{
		"all":             {store.Filter{}, want(5, 4, 3, 2, 1, 0)},
		"phase":           {store.Filter{Phases: []engine.Phase{engine.FailedPhase, engine.ErrorPhase}}, want(5, 4)},
		"language":        {store.Filter{Language: "argo"}, want(3, 2, 1, 0)},
		"namespace":       {store.Filter{Namespace: "team"}, want(5, 4)},
		"prefix":          {store.Filter{NamePrefix: "run-3"}, want(3)},
		"prefix, literal": {store.Filter{NamePrefix: "run%"}, want()},
		"since and until": {store.Filter{Since: run(2).Created, Until: run(4).Created}, want(3, 2)},
		"label":           {store.Filter{Labels: []store.LabelTerm{{Key: "n", Value: "1"}, {Key: "a.b/c", Value: "x"}}}, want(3, 1)},
		"label not":       {store.Filter{Labels: []store.LabelTerm{{Key: "n", Value: "1", Not: true}}}, want(5, 4, 2, 0)},
		"label exists":    {store.Filter{Labels: []store.LabelTerm{{Key: "n", Exists: true}}}, want(3, 2, 1, 0)},
		"label missing":   {store.Filter{Labels: []store.LabelTerm{{Key: "n", Exists: true, Not: true}}}, want(5, 4)},
		"limit":           {store.Filter{Limit: 2}, want(5, 4)},
	} {
		got, _, err := s.List(t.Context(), c.filter)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, uids(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func testListPages(t *testing.T, s store.Store) {
	for i := range 7 {
		r := run(i)
		r.Created = epoch.Add(time.Duration(i/3) * time.Second) // several at the same moment
		create(t, s, r)
	}
	var got []string
	after := ""
	for page := 0; ; page++ {
		runs, next, err := s.List(t.Context(), store.Filter{Limit: 2, After: after})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, uids(runs)...)
		if next == "" {
			break
		}
		if page == 0 { // a newer run must not shift the pages
			create(t, s, run(9))
		}
		after = next
	}
	var want []string
	for i := 6; i >= 0; i-- {
		want = append(want, run(i).UID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	if _, _, err := s.List(t.Context(), store.Filter{After: "nonsense"}); err == nil {
		t.Error("a nonsense cursor was accepted")
	}
}

func testStatus(t *testing.T, s store.Store) {
	create(t, s, run(1))
	want := store.Status{
		Phase: engine.FailedPhase, Message: "child failed", Started: epoch, Finished: epoch.Add(time.Second),
		Summary: store.Summary{Tasks: 2, Done: 2, Failed: 1},
	}
	if err := s.SetStatus(t.Context(), run(1).UID, want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), run(1).UID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.Status); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	if err := s.SetStatus(t.Context(), "none", want); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("status of a missing run: %v, want ErrNotFound", err)
	}
}

func testDelete(t *testing.T, s store.Store) {
	create(t, s, run(1), note(0))
	create(t, s, run(2), note(0))
	if err := s.SaveState(t.Context(), run(1).UID, 1, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), run(1).UID); err != nil {
		t.Fatal(err)
	}
	if events, err := s.Events(t.Context(), run(1).UID); err != nil || len(events) != 0 {
		t.Errorf("%d events are left, %v", len(events), err)
	}
	if err := s.Delete(t.Context(), run(1).UID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("second Delete: %v, want ErrNotFound", err)
	}
	create(t, s, run(3)) // may take the deleted row's place, but not its events
	if events, err := s.Events(t.Context(), run(3).UID); err != nil || len(events) != 0 {
		t.Errorf("a new run has %d events, %v", len(events), err)
	}
	if events, err := s.Events(t.Context(), run(2).UID); err != nil || len(events) != 1 {
		t.Errorf("the other run has %d events, %v", len(events), err)
	}
}
