package kube_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/kube"
	"github.com/sluice-ml/sluice/internal/store/kube/kubetest"
	"github.com/sluice-ml/sluice/internal/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, // the Kubernetes client keeps connections, for all that use it
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
}

// owner stands for the Workflow; on a real API server it must not be collected, so it is an object that is there.
var owner = metav1.OwnerReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: "wf", UID: "u"}

// suite makes runs in a namespace of the store's.
type suite struct {
	*kube.Store
	owner     metav1.OwnerReference
	namespace string
}

func (s suite) Create(ctx context.Context, run store.Run, events ...engine.Event) error {
	if s.namespace != "" {
		run.Namespace = s.namespace
	}
	return s.Store.Create(ctx, s.owner, run, events...)
}

func open(t testing.TB, config *rest.Config) *kube.Store {
	t.Helper()
	s, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJournal(t *testing.T) {
	storetest.RunJournal(t, func(t *testing.T) storetest.Journal {
		return suite{Store: open(t, kubetest.New(t).Config()), owner: owner}
	})
}

// cluster gives a real API server's configuration and a namespace there, with an object to own what is made.
func cluster(t testing.TB) (*rest.Config, string, metav1.OwnerReference) {
	t.Helper()
	file := os.Getenv("KUBECONFIG")
	if file == "" {
		t.Skip("no KUBECONFIG: not run against a real API server")
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sluice-journal-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	o, err := client.CoreV1().ConfigMaps(ns.Name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "wf"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return config, ns.Name, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}
}

func TestJournalOnCluster(t *testing.T) {
	storetest.RunJournal(t, func(t *testing.T) storetest.Journal {
		config, namespace, owner := cluster(t)
		return suite{open(t, config), owner, namespace}
	})
}

func event(i int) engine.Event {
	return engine.Event{
		Time: time.Date(2026, 9, 1, 12, 0, 0, i, time.UTC), Seed: rand.New(rand.NewPCG(1, uint64(i))).Uint64(),
		Finished: &engine.Finished{Node: engine.NodeID(i), Result: engine.Result{
			Phase: engine.SucceededPhase, ExitCode: new(int), Host: "node-1", Started: time.Date(2026, 9, 1, 11, 59, 0, i, time.UTC),
		}},
	}
}

func events(from, to int) []engine.Event {
	var out []engine.Event
	for i := from; i < to; i++ {
		out = append(out, event(i))
	}
	return out
}

// noise is a text that cannot be packed.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + 1 + r.IntN(90))
	}
	return string(b)
}

func large(i, n int) engine.Event {
	e := event(i)
	e.Finished.Result.Message = noise(n)
	return e
}

func theRun() store.Run {
	return store.Run{
		UID: "0198-aaaa", Name: "wf", Namespace: "ns", Language: "argo", Created: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC),
		Submission: store.Submission{
			Documents: []store.Document{{Name: "wf.yaml", Data: []byte("kind: Workflow\n\x00\xff")}}, Args: []byte(`{"a":"b"}`),
		},
	}
}

// check says whether another process finds these events.
func check(t *testing.T, server *kubetest.Server, want []engine.Event) {
	t.Helper()
	s := open(t, server.Config())
	if _, err := s.Get(t.Context(), "ns", theRun().UID); err != nil {
		t.Fatal(err)
	}
	got, err := s.Events(t.Context(), theRun().UID)
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(want, got) {
		return // soon, also with large ones
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestAnotherProcessGoesOn(t *testing.T) {
	server := kubetest.New(t)
	a, b := open(t, server.Config()), open(t, server.Config())
	run := theRun()
	if _, err := b.Get(t.Context(), "ns", run.UID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get before Create: %v, want ErrNotFound", err)
	}
	if err := a.Create(t.Context(), owner, run, event(0)); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(t.Context(), owner, run, event(0)); !errors.Is(err, kube.ErrExists) {
		t.Errorf("second Create: %v, want ErrExists", err)
	}
	if err := b.Append(t.Context(), run.UID, 1, events(1, 2)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Append to a run that is not known: %v, want ErrNotFound", err)
	}
	got, err := b.Get(t.Context(), "ns", run.UID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run, got); d != "" {
		t.Errorf("the run changed (-created +got):\n%s", d)
	}
	n := 1
	for i := range 300 { // many chunks, one process after the other
		s := []*kube.Store{a, b}[i%2]
		if err := s.Append(t.Context(), run.UID, n, events(n, n+9)); err != nil {
			t.Fatal(err)
		}
		n += 9
	}
	check(t, server, events(0, n))
	chunks := server.Objects("runjournals")
	if len(chunks) < 3 {
		t.Errorf("%d chunks, want several", len(chunks))
	}
	meta := chunks[len(chunks)-1]["metadata"].(map[string]any)
	if meta["labels"].(map[string]any)["sluice.dev/run"] != run.UID || meta["ownerReferences"].([]any)[0].(map[string]any)["name"] != "wf" {
		t.Errorf("the last chunk is not labelled and owned: %v", meta)
	}
	if _, err := b.EventsFrom(t.Context(), run.UID, 1000); err != nil {
		t.Error(err)
	}
	for _, from := range []int{0, 1, 9, 10, 1003, n - 1, n, n + 5} {
		got, err := b.EventsFrom(t.Context(), run.UID, from)
		if d := cmp.Diff(events(from, n), got); err != nil || d != "" {
			t.Errorf("EventsFrom(%d): %v (-want +got):\n%s", from, err, d)
		}
	}
}

// Two processes that both believe to own a run write one history, wherever chunks end.
func TestTwoOwners(t *testing.T) {
	server := kubetest.New(t)
	if err := open(t, server.Config()).Create(t.Context(), owner, theRun(), event(0)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[int]int{}
	for range 4 {
		wg.Go(func() {
			s := open(t, server.Config())
			if _, err := s.Get(t.Context(), "ns", theRun().UID); err != nil {
				t.Error(err)
				return
			}
			for from := 1; from < 1000; from += 10 {
				switch err := s.Append(t.Context(), theRun().UID, from, events(from, from+10)); {
				case err == nil:
					mu.Lock()
					won[from]++
					mu.Unlock()
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for from, n := range won {
		if n != 1 {
			t.Errorf("%d processes appended at %d", n, from)
		}
	}
	check(t, server, events(0, 1+10*len(won)))
}

func TestAnswersThatSayNeitherYesNorNo(t *testing.T) {
	for name, fault := range map[string]kubetest.Fault{
		"written, answer lost": kubetest.Lost, "not written, connection lost": kubetest.Dropped, "internal error": kubetest.Failed,
		"written twice": kubetest.Twice,
	} {
		t.Run(name, func(t *testing.T) {
			server := kubetest.New(t)
			s := open(t, server.Config())
			if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
				t.Fatal(err)
			}
			writes := 0
			server.Fail(func(method, _ string) kubetest.Fault {
				if method == "GET" {
					return kubetest.None
				}
				if writes++; writes%3 == 1 {
					return fault
				}
				return kubetest.None
			})
			n := 1
			for range 150 {
				err := s.Append(t.Context(), theRun().UID, n, events(n, n+9))
				if errors.Is(err, store.ErrConflict) {
					t.Fatalf("at %d: %v", n, err)
				}
				if err == nil {
					n += 9
				}
			}
			if n < 600 {
				t.Errorf("only %d events got in", n)
			}
			server.Fail(nil)
			check(t, server, events(0, n))
		})
	}
}

// The server cannot be reached after a lost answer either: what happened is found out at the next try.
func TestOutcomeIsLearntLater(t *testing.T) {
	for _, written := range []bool{true, false} {
		t.Run(fmt.Sprintf("written %t", written), func(t *testing.T) {
			server := kubetest.New(t)
			s := open(t, server.Config())
			if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
				t.Fatal(err)
			}
			server.Fail(func(method, _ string) kubetest.Fault {
				switch {
				case method == "GET":
					return kubetest.Failed
				case written:
					return kubetest.Lost
				}
				return kubetest.Dropped
			})
			for range 2 {
				if err := s.Append(t.Context(), theRun().UID, 1, events(1, 3)); err == nil || errors.Is(err, store.ErrConflict) {
					t.Fatalf("Append: %v, want an error that is no conflict", err)
				}
			}
			server.Fail(nil)
			if err := s.Append(t.Context(), theRun().UID, 1, events(1, 3)); err != nil {
				t.Fatalf("the same again: %v", err)
			}
			if err := s.Append(t.Context(), theRun().UID, 1, events(1, 3)); !errors.Is(err, store.ErrConflict) {
				t.Errorf("and again: %v, want ErrConflict", err)
			}
			check(t, server, events(0, 3))
		})
	}
	t.Run("something else is said next", func(t *testing.T) {
		server := kubetest.New(t)
		s := open(t, server.Config())
		if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
			t.Fatal(err)
		}
		server.Fail(func(method, _ string) kubetest.Fault {
			if method == "GET" {
				return kubetest.Failed
			}
			return kubetest.Lost
		})
		if err := s.Append(t.Context(), theRun().UID, 1, events(1, 3)); err == nil {
			t.Fatal("no error")
		}
		server.Fail(nil)
		if err := s.Append(t.Context(), theRun().UID, 1, events(7, 8)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Append: %v, want ErrConflict", err)
		}
		check(t, server, events(0, 3))
	})
}

func TestSomebodyLabelsAChunk(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
		t.Fatal(err)
	}
	server.Touch("0198-aaaa-e0000000000")
	if err := s.Append(t.Context(), theRun().UID, 1, events(1, 2)); err != nil {
		t.Fatal(err)
	}
	check(t, server, events(0, 2))
}

func TestDeletedJournals(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	if err := s.Create(t.Context(), owner, theRun(), events(0, 2000)...); err != nil { // fills the first chunk
		t.Fatal(err)
	}
	for n := 2000; n < 6000; n += 2000 {
		if err := s.Append(t.Context(), theRun().UID, n, events(n, n+2000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.Objects("runjournals")); n != 3 {
		t.Fatalf("%d chunks, want 3", n)
	}
	server.Remove("0198-aaaa-e0000002000")
	if _, err := s.Events(t.Context(), theRun().UID); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Events without the second chunk: %v, want one that says so", err)
	}
	server.Remove("0198-aaaa-e0000000000")
	server.Remove("0198-aaaa-e0000004000")
	if _, err := s.Events(t.Context(), theRun().UID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Events without any: %v, want ErrNotFound", err)
	}
}

// The workflow was deleted, and its journal with it: whoever still runs it learns that trying again is of no use.
func TestAppendAfterDeletion(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
		t.Fatal(err)
	}
	server.Remove("0198-aaaa-e0000000000")
	for range 2 {
		if err := s.Append(t.Context(), theRun().UID, 1, events(1, 2)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Append: %v, want ErrNotFound", err)
		}
	}
}

func TestLargeValues(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	run := theRun()
	run.Submission.Documents[0].Data = []byte(noise(1500 << 10))
	if err := s.Create(t.Context(), owner, run, large(0, 700<<10)); err != nil {
		t.Fatal(err)
	}
	want := []engine.Event{large(0, 700<<10), large(1, 3<<20), large(2, 300<<10), event(3)}
	for i, e := range want[1:] {
		if err := s.Append(t.Context(), run.UID, i+1, []engine.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := open(t, server.Config()).Get(t.Context(), "ns", run.UID); err != nil || !reflect.DeepEqual(run, got) {
		t.Errorf("Get of a large submission: %v, %d bytes", err, len(got.Submission.Documents[0].Data))
	}
	check(t, server, want)
	err := s.Append(t.Context(), run.UID, 4, []engine.Event{large(4, kube.MaxEvent+1)})
	var p interface{ Permanent() bool }
	if !errors.Is(err, kube.ErrTooLarge) || !errors.As(err, &p) || !p.Permanent() {
		t.Errorf("an event over the limit: %v, want a permanent ErrTooLarge", err)
	}
	for _, o := range server.Objects("runjournals") {
		if o["spec"].(map[string]any)["part"] == "Bytes" {
			continue
		}
		for k, v := range o["data"].(map[string]any) {
			if len(v.(string)) > 512<<10 {
				t.Errorf("%s has %d bytes inline", k, len(v.(string)))
			}
		}
	}
}

func TestLargeSnapshotsReplaceEachOther(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
		t.Fatal(err)
	}
	count := func() int { return len(server.Objects("runjournals")) }
	state := noise(2 << 20)
	for n, c := range map[int]string{1: state, 2: state[1:], 3: "small", 4: state[2:]} {
		other := open(t, server.Config()) // does not know what the one before wrote
		if _, err := other.Get(t.Context(), "ns", theRun().UID); err != nil {
			t.Fatal(err)
		}
		if err := other.SaveState(t.Context(), theRun().UID, n, []byte(c)); err != nil {
			t.Fatal(err)
		}
		gotN, got, err := s.LoadState(t.Context(), theRun().UID)
		if err != nil || gotN != n || string(got) != c {
			t.Errorf("LoadState = %d, %d bytes, %v", gotN, len(got), err)
		}
		if most := 2 + (len(c)+512<<10)/(512<<10); count() > most {
			t.Errorf("%d objects after snapshot %d, want at most %d", count(), n, most)
		}
	}
	for _, o := range server.Objects("runjournals") {
		if o["spec"].(map[string]any)["part"] == "Bytes" {
			server.Remove(o["metadata"].(map[string]any)["name"].(string))
		}
	}
	if err := s.SaveState(t.Context(), theRun().UID, 9, []byte(state)); err != nil {
		t.Fatal(err)
	}
	for _, o := range server.Objects("runjournals") {
		if o["spec"].(map[string]any)["part"] == "Bytes" {
			o["data"].(map[string]any)["piece"] = "AAAA"
		}
	}
	if _, _, err := s.LoadState(t.Context(), theRun().UID); err == nil {
		t.Error("a changed snapshot was believed")
	}
}

// What is sent and received for an append does not grow with what is there.
func TestBytesPerAppend(t *testing.T) {
	server := kubetest.New(t)
	s := open(t, server.Config())
	if err := s.Create(t.Context(), owner, theRun(), event(0)); err != nil {
		t.Fatal(err)
	}
	cost := func(n int) kubetest.Counts {
		before := server.Counts()
		for i := n; i < n+500; i++ {
			if err := s.Append(t.Context(), theRun().UID, i, events(i, i+1)); err != nil {
				t.Fatal(err)
			}
		}
		after := server.Counts()
		return kubetest.Counts{Writes: after.Writes - before.Writes, Sent: after.Sent - before.Sent, Received: after.Received - before.Received}
	}
	first := cost(1)
	for n := 501; n < 4501; n += 500 {
		cost(n)
	}
	last := cost(4501)
	if first.Writes != 500 || last.Writes != 500 {
		t.Errorf("500 appends made %d and %d writes", first.Writes, last.Writes)
	}
	if last.Sent > first.Sent*11/10 || last.Received > first.Received*11/10 {
		t.Errorf("the first 500 appends: %+v, after 4,500: %+v", first, last)
	}
}
