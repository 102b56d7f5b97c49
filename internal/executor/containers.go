package executor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Exit codes of commands that never ran, as Argo's executor and a shell have them.
const (
	exitNotFound   = 64
	exitTerminated = 128 + int(syscall.SIGTERM)
	exitKilled     = 128 + int(syscall.SIGKILL)
)

// defaultGrace is how long a command may take to end after SIGTERM: Kubernetes' own default.
const defaultGrace = 30 * time.Second

// group runs the containers of a task: each starts when those that it needs have succeeded. One goroutine does it all,
// because children die with the thread that started them.
type group struct {
	job     *job
	logs    *logs
	started time.Time
	results []spec.ContainerResult
	tries   []int
	pids    map[int]int // pid → index of the container
	waiting map[int]bool
	reaper  *reaper
	retry   chan int

	stopped, timedOut bool
	over              bool // nothing needs this container any more
	kill              *time.Timer
	cpu               time.Duration
	memory            int64
}

// runContainers runs all containers until none is left, or until a signal or the timeout ends them.
func (j *job) runContainers(l *logs) ending {
	g := &group{
		job: j, logs: l, started: time.Now().UTC(), pids: map[int]int{}, waiting: map[int]bool{}, reaper: newReaper(),
		results: make([]spec.ContainerResult, len(j.task.Containers)), tries: make([]int, len(j.task.Containers)),
		retry: make(chan int, len(j.task.Containers)), kill: time.NewTimer(time.Hour),
	}
	g.kill.Stop()
	for i, c := range j.task.Containers {
		g.results[i].Name = c.Name
		g.waiting[i] = true
	}
	if j.task.Launched && j.pod == nil {
		stop, err := j.listen()
		if err != nil {
			return ending{Failure: err.Error()}
		}
		defer stop()
	}
	// In this order: whoever asks for a stop first leaves the file and then looks whether there is something to signal.
	if err := j.step(spec.StartedLine(g.started)); err != nil {
		return ending{Failure: err.Error()}
	}
	if s := j.stopAsked(); s != nil {
		g.signal(s)
	}
	ran := !g.ending()
	g.loop()
	g.reaper.killAll(j.task.Sandbox != nil)
	l.drain()
	// Only now: whoever goes on from here after a crash finds all that the commands printed.
	if err := j.step(g.endLines()); err != nil {
		j.warnings = append(j.warnings, err.Error())
	}
	return ending{
		Ran: ran, Stopped: g.stopped, TimedOut: g.timedOut, Started: g.started, Containers: g.results,
		CPU: g.cpu, MaxMemory: g.memory,
		Stdout: g.stdout(),
	}
}

// stdout is what is kept of the main container's standard output.
func (g *group) stdout() *string {
	if text, kept := g.logs.result(); kept {
		return &text
	}
	return nil
}

// endLines record how everything ended.
func (g *group) endLines() string {
	var lines strings.Builder
	for _, r := range g.results {
		lines.WriteString(spec.ExitedLine(r.Name, *r.ExitCode))
	}
	if text, kept := g.logs.result(); kept {
		lines.WriteString(spec.StdoutLine(text))
	}
	lines.WriteString(spec.DoneLine(g.stopped, g.timedOut))
	return lines.String()
}

func (g *group) loop() {
	var timeout <-chan time.Time
	if g.job.task.Timeout > 0 {
		timer := time.NewTimer(g.job.task.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	retrying := 0
	for {
		g.startReady()
		if len(g.pids) == 0 && retrying == 0 {
			return
		}
		select {
		case dead := <-g.reaper.dead:
			retrying += g.exited(dead)
		case i := <-g.retry:
			retrying--
			g.waiting[i] = true
		case s := <-g.job.signals:
			g.signal(s)
		case <-timeout:
			g.timedOut = true
			g.terminate()
		case <-g.kill.C:
			g.sendAll(syscall.SIGKILL)
		}
		if g.ending() {
			retrying = 0
		}
	}
}

// startReady starts every container whose needs are met, and gives up on those whose needs cannot be met any more.
func (g *group) startReady() {
	for changed := true; changed; {
		changed = false
		for i := range g.job.task.Containers {
			if !g.waiting[i] {
				continue
			}
			switch reason, ready := g.ready(i); {
			case reason != "":
				delete(g.waiting, i)
				notStarted(&g.results[i], reason)
				changed = true
			case ready:
				delete(g.waiting, i)
				g.start(i)
				changed = true
			}
		}
	}
}

// ready says whether a container can start now, or why it never will.
func (g *group) ready(i int) (never string, now bool) {
	if g.ending() {
		return "it was not started", false
	}
	now = true
	for _, need := range g.job.task.Containers[i].Needs {
		for k, c := range g.job.task.Containers {
			if c.Name != need {
				continue
			}
			switch g.results[k].Phase {
			case spec.Succeeded:
			case "":
				now = false
			default:
				return fmt.Sprintf("it needs container %s, which failed", need), false
			}
		}
	}
	return "", now
}

// start starts a container's command; one that cannot start has ended.
func (g *group) start(i int) {
	c := g.job.task.Containers[i]
	if g.results[i].Started.IsZero() {
		g.results[i].Started = time.Now().UTC()
	}
	pid, err := g.spawn(c)
	if err != nil {
		exit(&g.results[i], exitNotFound)
		g.results[i].Message += ": " + err.Error()
		return
	}
	g.pids[pid] = i
	g.reaper.started()
}

func (g *group) spawn(c spec.Container) (int, error) {
	if c.Dir != "" {
		if err := g.job.users[c.Name].makeFolder(c.Dir); err != nil {
			return 0, fmt.Errorf("make the working directory: %w", err)
		}
	}
	program, err := lookPath(c)
	if err != nil {
		return 0, err
	}
	out, errs, err := g.logs.streams(c.Name)
	if err != nil {
		return 0, err
	}
	pid, err := g.job.fork(c, program, [3]uintptr{g.logs.null.Fd(), out.Fd(), errs.Fd()})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	return pid, nil
}

// exited takes note of a process that ended. It returns 1 where its container will be started again later.
func (g *group) exited(d dead) int {
	g.cpu += d.cpu
	g.memory = max(g.memory, d.memory)
	i, ours := g.pids[d.pid]
	if !ours {
		return 0 // an orphan of the task
	}
	delete(g.pids, d.pid)
	// A container ends with its first process: what that left in its group goes, too. Nothing may be left.
	_ = syscall.Kill(-d.pid, syscall.SIGKILL)
	c := g.job.task.Containers[i]
	again := d.code != 0 && g.tries[i] < c.Retries && !g.ending()
	if !again {
		exit(&g.results[i], d.code)
		if d.code == exitKilled && g.job.groups.starved(c.Name) {
			g.results[i].Message = fmt.Sprintf("OOMKilled (exit code %d)", d.code)
		}
		return 0
	}
	g.tries[i]++
	time.AfterFunc(c.Delay, func() { g.retry <- i })
	return 1
}

// ending says that no command is to be started any more.
func (g *group) ending() bool { return g.stopped || g.timedOut || g.over }

// signal is told to the executor from outside: SIGQUIT ends the commands at once, any other signal gently.
func (g *group) signal(s os.Signal) {
	if g.job.pod != nil {
		g.podSignal(s)
		return
	}
	g.stopped = true
	if s == syscall.SIGQUIT {
		g.kill.Stop()
		g.sendAll(syscall.SIGKILL)
		return
	}
	g.terminate()
}

func (g *group) terminate() {
	g.sendAll(syscall.SIGTERM)
	g.kill.Reset(g.job.grace())
}

// grace is how long a command may take to end once it was told to.
func (j *job) grace() time.Duration {
	if j.task.Grace <= 0 {
		return defaultGrace
	}
	return j.task.Grace
}

// sendAll sends a signal to the process group of every running container.
func (g *group) sendAll(s syscall.Signal) {
	for pid := range g.pids {
		// The group may have ended this moment; there is nothing to do about it.
		_ = syscall.Kill(-pid, s)
	}
}
