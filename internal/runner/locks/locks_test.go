package locks_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner/locks"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink hands on what is told.
type sink chan told

type told struct {
	run string
	*engine.Acquired
}

func (s sink) Tell(run string, e engine.Event) {
	if e.Acquired != nil {
		s <- told{run, e.Acquired}
	}
}

func (s sink) next(t *testing.T) told {
	t.Helper()
	select {
	case got := <-s:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was granted")
		return told{}
	}
}

func (s sink) none(t *testing.T) {
	t.Helper()
	select {
	case got := <-s:
		t.Fatalf("run %s node %d was granted a lock that is not free", got.run, got.Node)
	default:
	}
}

// process is one of several that share a database.
type process struct {
	*locks.Locks
	sink
	ledger *sqlite.Store
}

func start(t *testing.T, path string, o locks.Options) *process {
	t.Helper()
	st, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if o.Poll == 0 {
		o.Poll = 5 * time.Millisecond
	}
	p := &process{sink: make(sink, 100), ledger: st}
	p.Locks = locks.New(st, p.sink, o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "sluice.db") }

func run(name string) engine.Run { return engine.Run{Name: name, UID: name, Namespace: "default"} }

func mutex(names ...string) []program.Lock {
	var out []program.Lock
	for _, n := range names {
		out = append(out, program.Lock{Name: n})
	}
	return out
}

func (p *process) ask(t *testing.T, name string, node engine.NodeID, l []program.Lock) {
	p.Acquire(t.Context(), run(name), &program.Program{ConfigMaps: map[string]map[string]string{
		"sizes": {"two": "2", "none": "0", "text": "many"},
	}}, engine.AcquireLocks{Node: node, Path: fmt.Sprint(name, node), Locks: l})
}

func (p *process) give(name string, node engine.NodeID) {
	p.Release(run(name), engine.ReleaseLocks{Node: node, Path: fmt.Sprint(name, node)})
}

// settle makes sure that everything that can be granted has been.
func (p *process) settle(t *testing.T) {
	t.Helper()
	p.ask(t, "probe", 1, mutex("probe"))
	if got := p.next(t); got.run != "probe" {
		t.Fatalf("run %s node %d was granted a lock that is not free", got.run, got.Node)
	}
	p.give("probe", 1)
}

func TestMutexInOrder(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	for node := range engine.NodeID(5) {
		p.ask(t, "a", node+1, mutex("m"))
	}
	for node := range engine.NodeID(5) {
		if got := p.next(t); got.Node != node+1 {
			t.Fatalf("granted to %d, want %d", got.Node, node+1)
		}
		p.settle(t)
		p.give("a", node+1)
	}
}

// notes hands on what those that wait are told.
type notes chan string

func (s notes) Tell(run string, e engine.Event) {
	if e.Noted != nil {
		s <- fmt.Sprintf("%s %d %s", run, e.Noted.Node, e.Noted.Message)
	}
}

// Who waits is told which lock it waits for and who holds it, in Argo's words, and again when that changes.
func TestWaitersAreTold(t *testing.T) {
	file := path(t)
	p := start(t, file, locks.Options{})
	sizes := &program.Program{ConfigMaps: map[string]map[string]string{"sizes": {"two": "2"}}}
	both := append(mutex("m"), program.Lock{Semaphore: true, Name: "sizes", Key: "two"})
	p.Acquire(t.Context(), run("a"), sizes, engine.AcquireLocks{Path: "a", Locks: both})
	p.next(t)
	p.Acquire(t.Context(), run("b"), sizes, engine.AcquireLocks{Path: "b", Locks: both[1:]})
	p.next(t)

	st, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	told := make(notes, 100)
	other := locks.New(st, told, locks.Options{Poll: 5 * time.Millisecond})
	defer func() {
		if err := errors.Join(other.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing was told, want %q", want)
		}
	}
	other.Acquire(t.Context(), run("c"), sizes, engine.AcquireLocks{Node: 7, Path: "c[0].x", Locks: both})
	next("c 7 Waiting for default/Mutex/m lock. Lock status: 0/1; held by a; " +
		"Waiting for default/ConfigMap/sizes/two lock. Lock status: 0/2; held by a, b")
	p.Release(run("b"), engine.ReleaseLocks{Path: "b"})
	next("c 7 Waiting for default/Mutex/m lock. Lock status: 0/1; held by a")
}

func TestSemaphore(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	sem := []program.Lock{{Semaphore: true, Name: "sizes", Key: "two"}}
	for node := range engine.NodeID(3) {
		p.ask(t, "a", node+1, sem)
	}
	if a, b := p.next(t), p.next(t); a.Node+b.Node != 3 {
		t.Fatalf("granted to %d and %d, want the first two", a.Node, b.Node)
	}
	p.settle(t)
	p.give("a", 2)
	if got := p.next(t); got.Node != 3 {
		t.Errorf("granted to %d, want 3", got.Node)
	}
}

// Who asks for two locks gets both or none, and keeps its place in both queues.
func TestSeveralAtOnce(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	p.ask(t, "a", 1, mutex("x"))
	p.next(t)
	p.ask(t, "a", 2, mutex("x", "y", "x"))
	p.ask(t, "a", 3, mutex("y"))
	p.settle(t)
	p.give("a", 1)
	if got := p.next(t); got.Node != 2 {
		t.Fatalf("granted to %d, want 2, which asked first", got.Node)
	}
	p.settle(t)
	p.give("a", 2)
	if got := p.next(t); got.Node != 3 {
		t.Errorf("granted to %d, want 3", got.Node)
	}
}

func TestGivingUpAPlace(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	p.ask(t, "a", 1, mutex("m"))
	p.next(t)
	p.ask(t, "a", 2, mutex("m"))
	p.ask(t, "a", 3, mutex("m"))
	p.give("a", 2)
	p.give("a", 2) // to give nothing back is no error
	p.give("a", 1)
	if got := p.next(t); got.Node != 3 {
		t.Errorf("granted to %d, want 3", got.Node)
	}
}

func TestAskingAgainKeepsThePlace(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	p.ask(t, "a", 1, mutex("m"))
	p.next(t)
	p.ask(t, "a", 2, mutex("m"))
	p.ask(t, "a", 1, mutex("m")) // as after a resume
	if got := p.next(t); got.Node != 1 {
		t.Fatalf("granted to %d, want 1, which holds it", got.Node)
	}
	p.settle(t)
}

func TestAcrossProcesses(t *testing.T) {
	file := path(t)
	p, q := start(t, file, locks.Options{}), start(t, file, locks.Options{})
	p.ask(t, "a", 1, mutex("m"))
	p.next(t)
	q.ask(t, "b", 1, mutex("m"))
	q.settle(t)
	p.give("a", 1)
	if got := q.next(t); got.run != "b" {
		t.Errorf("granted to %s, want b", got.run)
	}
}

// A process that does not renew its lease loses its locks; one that ends gives them up at once.
func TestAProcessThatIsGone(t *testing.T) {
	file := path(t)
	p := start(t, file, locks.Options{})
	now := time.Now()
	if err := p.ledger.AskLocks(t.Context(), "dead", "d", "d1", []string{"mutex/default/m"}, []int{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ledger.GrantLocks(t.Context(), "dead", now.Add(-time.Hour), now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	p.ask(t, "a", 1, mutex("m"))
	if got := p.next(t); got.run != "a" {
		t.Errorf("granted to %s, want a", got.run)
	}
	q := start(t, file, locks.Options{})
	q.ask(t, "b", 1, mutex("m"))
	q.settle(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := q.next(t); got.run != "b" {
		t.Errorf("granted to %s, want b", got.run)
	}
}

func TestLocksThatCannotBe(t *testing.T) {
	p := start(t, path(t), locks.Options{})
	for want, lock := range map[string]program.Lock{
		`no ConfigMap "none"`:          {Semaphore: true, Name: "none", Key: "k"},
		`has no key "k"`:               {Semaphore: true, Name: "sizes", Key: "k"},
		`must be a number of at least`: {Semaphore: true, Name: "sizes", Key: "text"},
		`at least 1, not "0"`:          {Semaphore: true, Name: "sizes", Key: "none"},
		`controller's database`:        {Semaphore: true, Name: "x", Database: true},
	} {
		p.ask(t, "a", 1, []program.Lock{lock})
		if got := p.next(t); !strings.Contains(got.Failure, want) {
			t.Errorf("failure %q, want it to contain %q", got.Failure, want)
		}
	}
	p.none(t)
}
