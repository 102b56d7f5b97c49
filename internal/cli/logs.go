package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

func (a *app) logsCommand() *cobra.Command {
	var follow, noPrefix bool
	var grep, nodes string
	var tail int
	c := &cobra.Command{
		Use:   "logs RUN [TASK...]",
		Short: "Print what the tasks of a run wrote",
		Long: `Print what the tasks of a run wrote to standard output and standard error, each line with its task. RUN is a name, a
UID or its beginning, or @latest. TASK narrows it to tasks of that name, or of that path in full.`,
		Example: `  sluice logs @latest
  sluice logs hello-world-x7k2p -f --grep error
  sluice logs my-run train --no-prefix`,
		Args:              atLeastOne("a run and, if you like, tasks"),
		ValidArgsFunction: a.completeRunThenTasks,
		RunE: func(c *cobra.Command, args []string) error {
			var filter *regexp.Regexp
			if grep != "" {
				var err error
				if filter, err = regexp.Compile(grep); err != nil {
					return usage("--grep: %w", err)
				}
			}
			if _, err := parseNodeSelector(nodes); err != nil {
				return err
			}
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			f := a.newLogFollower(a.Stdout, uid, logOptions{
				prefix: !noPrefix, colour: a.stdoutColour(), grep: filter, tasks: args[1:], nodes: nodes, tail: tail, whole: !follow,
			})
			defer f.close()
			if !follow {
				s, err := a.look(c.Context(), uid)
				if err != nil {
					return err
				}
				f.Changed(everythingOf(s.state))
				f.close()
				return f.nothing(s.state)
			}
			return a.followRun(c.Context(), uid, f)
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	fl.StringVar(&grep, "grep", "", "only lines that match this regular `expression`")
	fl.StringVar(&nodes, "node-field-selector", "", "only nodes that match: `field=value,...`")
	fl.IntVar(&tail, "tail", -1, "only the last `n` lines of each task")
	fl.BoolVar(&noPrefix, "no-prefix", false, "lines as they are, without the task")
	return c
}

// everythingOf is the first view of a state.
func everythingOf(s *engine.State) runner.View {
	ids := []engine.NodeID{0}
	for n := range s.Nodes() {
		ids = append(ids, n.ID)
	}
	return runner.View{State: s, Changed: ids}
}

// logOptions say which lines are shown, and how.
type logOptions struct {
	prefix bool
	colour colourMode
	grep   *regexp.Regexp
	tasks  []string
	nodes  string
	tail   int
	// whole prints task after task instead of what comes when it comes.
	whole bool
}

// logFollower prints the logs of tasks as they grow.
type logFollower struct {
	logOptions
	a   *app
	w   io.Writer
	uid string

	mu    sync.Mutex
	files map[string]*logFile // by the attempt's path
	order []*logFile
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	lines int
}

type logFile struct {
	path, label string
	colour      colour
	offset      int64
	rest        []byte // an unfinished line
	ended       bool
	skip        bool // nothing more to come
}

var taskColours = []colour{cyan, magenta, blue, green, yellow}

func (a *app) newLogFollower(w io.Writer, uid string, o logOptions) *logFollower {
	f := &logFollower{logOptions: o, a: a, w: w, uid: uid, files: map[string]*logFile{}, stop: make(chan struct{}), done: make(chan struct{})}
	if o.whole {
		close(f.done)
		return f
	}
	go f.loop()
	return f
}

// Changed implements [runner.Observer].
func (f *logFollower) Changed(v runner.View) {
	chosen := map[engine.NodeID]bool{}
	if f.nodes != "" {
		nodes, _ := selectNodes(v.State, f.nodes) // checked before
		for _, n := range nodes {
			chosen[n.ID] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range v.Changed {
		n := v.State.Node(id)
		if n == nil || n.Kind != engine.Leaf || n.Started.IsZero() || n.Reused || (f.nodes != "" && !chosen[id]) || !f.wanted(n) {
			continue
		}
		path := attemptPath(n)
		file := f.files[path]
		if file == nil {
			label := strings.TrimPrefix(strings.TrimPrefix(n.Path, v.State.Run.Name), ".")
			if label == "" {
				label = n.Path
			}
			file = &logFile{path: path, label: label, colour: taskColours[len(f.order)%len(taskColours)]}
			f.files[path] = file
			f.order = append(f.order, file)
		}
		file.ended = n.Phase.Ended()
	}
}

// attemptPath is the path under which the backend knows a node's attempt.
func attemptPath(n *engine.Node) string {
	if n.Identity != "" {
		return n.Identity
	}
	return n.Path
}

func (f *logFollower) wanted(n *engine.Node) bool {
	if len(f.tasks) == 0 {
		return true
	}
	for _, t := range f.tasks {
		name, _, _ := strings.Cut(n.Name, "(")
		if t == n.Path || t == n.Name || t == name || strings.HasSuffix(n.Path, "."+t) {
			return true
		}
	}
	return false
}

func (f *logFollower) loop() {
	defer close(f.done)
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.read()
		}
	}
}

// close prints what is left.
func (f *logFollower) close() {
	f.once.Do(func() {
		close(f.stop)
		<-f.done
		f.mu.Lock()
		for _, file := range f.order {
			file.ended, file.skip = true, false
		}
		f.mu.Unlock()
		f.read()
	})
}

func (f *logFollower) read() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.order {
		if !file.skip {
			f.readFile(file)
			file.skip = file.ended
		}
	}
}

func (f *logFollower) readFile(file *logFile) {
	in, err := os.Open(process.LogFile(f.a.home, f.uid, file.path))
	if err != nil {
		return // it has not begun to write
	}
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(io.NewSectionReader(in, file.offset, 1<<40))
	if err != nil {
		return
	}
	file.offset += int64(len(data))
	data = append(file.rest, data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	if file.ended {
		end = len(data)
	}
	file.rest = append([]byte(nil), data[end:]...)
	f.print(file, data[:end])
}

func (f *logFollower) print(file *logFile, data []byte) {
	if len(data) == 0 {
		return
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if f.whole && f.tail >= 0 && len(lines) > f.tail {
		lines = lines[len(lines)-f.tail:]
	}
	var out bytes.Buffer
	for _, line := range lines {
		if f.grep != nil && !f.grep.Match(line) {
			continue
		}
		if f.prefix {
			out.WriteString(f.colour.paint(file.colour, file.label+":") + " ")
		}
		out.Write(bytes.TrimSuffix(line, []byte("\r")))
		out.WriteByte('\n')
		f.lines++
	}
	_, _ = f.w.Write(out.Bytes())
}

// nothing is the error of a task that is not there.
func (f *logFollower) nothing(s *engine.State) error {
	if len(f.tasks) == 0 || len(f.order) > 0 {
		return nil
	}
	return usage("run %s has no task %s that has started; sluice get %s shows its tasks", s.Run.Name, strings.Join(f.tasks, " or "), s.Run.Name)
}

// followRun shows a run to an observer until it ends, from its journal: it may be run by any process.
func (a *app) followRun(ctx context.Context, uid string, observers ...runner.Observer) error {
	st, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	l, err := a.look(ctx, uid)
	if err != nil {
		return err
	}
	signals, end := a.Interrupts()
	defer end()
	tell := func(v runner.View) {
		for _, o := range observers {
			o.Changed(v)
		}
	}
	l.state.TakeChanged()
	tell(everythingOf(l.state))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !l.state.Phase.Ended() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-signals:
			return failure{errReported}
		case <-tick.C:
		}
		events, err := st.EventsFrom(ctx, uid, l.position)
		if err != nil {
			return err
		}
		for _, e := range events {
			if _, err := l.machine.Step(l.state, e); err != nil {
				return fmt.Errorf("follow run %s: event %d: %w", l.run.Name, l.position, err)
			}
			l.position++
		}
		if len(events) == 0 {
			if !a.owned(uid) {
				if again, err := st.EventsFrom(ctx, uid, l.position); err == nil && len(again) == 0 {
					return &notRunning{l.run.Name}
				}
			}
			continue
		}
		tell(runner.View{State: l.state, Changed: l.state.TakeChanged()})
	}
	return nil
}

// notRunning says that a run has not ended, but that nobody goes on with it.
type notRunning struct{ name string }

func (n *notRunning) Error() string {
	return fmt.Sprintf("no process goes on with run %s; go on with it by: sluice resume %s", n.name, n.name)
}
