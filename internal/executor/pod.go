package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/client"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Exit codes of a container whose command did not end by itself with one; exitNotFound and exitTerminated besides.
const (
	// exitBroken is of a container around whose command something broke: its inputs or outputs, or the executor itself. It is
	// what Argo's executor has for that.
	exitBroken = 65
)

// Places say where things lie in a pod; what is empty is where the package spec says.
type Places struct {
	// Folder is what all containers of the pod share, TerminationLog where the result goes, TokenFile the endpoint's token.
	Folder, TerminationLog, TokenFile string
}

func (p Places) withDefaults() Places {
	for field, normal := range map[*string]string{
		&p.Folder: spec.PodDir, &p.TerminationLog: spec.TerminationLog, &p.TokenFile: spec.TokenFile,
	} {
		if *field == "" {
			*field = normal
		}
	}
	return p
}

// pod is one container of a task pod, in which this process is the first.
type pod struct {
	spec    spec.Pod
	name    string // of this container
	places  Places
	host    Host
	stderr  io.Writer
	signals chan os.Signal
	over    bool // its command was ended because nothing needed it any more
	// endpoint is nil where the task has nothing to do with it.
	endpoint *client.Client
	ends     ends
}

// Pod does what the environment of a container of a task pod asks for. It gives the container's exit code: the command's
// own, or one of those above. command is what the container runs, unless the environment says it.
func Pod(command []string, host Host, stderr io.Writer) int {
	runtime.LockOSThread() // see Run
	// Image and pod may name any signal to end a container with.
	signals := catchSignals(append(endingSignals(), relayedSignals()...)...)
	p := &pod{places: host.Places.withDefaults(), host: host, stderr: stderr, signals: signals}
	if err := p.read(command); err != nil {
		p.report(broken(err.Error(), false))
		return exitBroken
	}
	done, err := p.markAlive()
	if err != nil {
		p.report(broken(err.Error(), false))
		return exitBroken
	}
	code := p.exitCode(p.report(p.result()))
	if err := done(code); err != nil {
		p.say(err.Error())
	}
	return code
}

// read takes what is to be done out of the environment, which the command is not to see it in.
func (p *pod) read(command []string) error {
	var text, file string
	var rest []string
	for _, v := range p.host.Environ {
		switch name, value, _ := strings.Cut(v, "="); name {
		case spec.PodEnv:
			text = value
		case spec.PodFileEnv:
			file = value
		default:
			rest = append(rest, v)
		}
	}
	p.host.Environ = rest
	source := spec.PodEnv
	if text == "" && file != "" {
		source = file
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read what to do: %w", err)
		}
		text = string(data)
	}
	if text == "" {
		return fmt.Errorf("there is nothing to do: neither %s nor %s is set", spec.PodEnv, spec.PodFileEnv)
	}
	if err := json.Unmarshal([]byte(text), &p.spec); err != nil {
		return fmt.Errorf("%s is not what a controller of this version writes: %w", source, err)
	}
	if n := len(p.spec.Task.Containers); n != 1 {
		return fmt.Errorf("%s has %d containers, and needs one", source, n)
	}
	p.name = p.spec.Task.Containers[0].Name
	if p.name == "" || p.name != filepath.Base(p.name) || !filepath.IsLocal(p.name) {
		return fmt.Errorf("%s: %q is no container's name", source, p.name)
	}
	if len(p.spec.Task.Containers[0].Argv) == 0 {
		p.spec.Task.Containers[0].Argv = command
	}
	if len(p.spec.Task.Containers[0].Argv) == 0 {
		return fmt.Errorf("%s has no command, and none follows", source)
	}
	p.spec.Task.Containers[0].Inherit = true
	p.spec.Task.Launched = true
	return p.connect()
}

// result does the task.
func (p *pod) result() spec.Result {
	if why, stopped := p.await(); why != "" {
		return p.notStarted(why, stopped)
	}
	result, err := p.work()
	if err != nil {
		return broken(err.Error(), false)
	}
	return result
}

// work does the task in a folder of its own. The folder is the pod's: a container that is started a second time finds
// what its first executor has left there.
func (p *pod) work() (spec.Result, error) {
	folder := filepath.Join(p.places.Folder, "task", p.name)
	if err := p.makeShared("task"); err != nil {
		return spec.Result{}, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return spec.Result{}, fmt.Errorf("make the task folder: %w", err)
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return spec.Result{}, fmt.Errorf("open the task folder: %w", err)
	}
	defer dir.Close()
	state, err := lock(dir)
	if err != nil {
		return spec.Result{}, err
	}
	defer state.Close()
	before, err := readState(state)
	if err != nil {
		return spec.Result{}, err
	}
	task := p.spec.Task
	inherit(&task, p.host.Environ)
	if p.spec.Sidecar {
		stop := p.endWithOthers()
		defer stop()
	}
	j := &job{dir: dir, task: task, state: state, signals: p.signals, parse: p.host.Parse, pod: p}
	return j.attempt(before), nil
}

// makeShared makes a folder that the executors of all containers use, whoever their users are.
func (p *pod) makeShared(name string) error {
	folder := filepath.Join(p.places.Folder, name)
	err := os.Mkdir(folder, 0o777)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(folder, 0o777|os.ModeSticky) // the umask has had its say
	}
	if err != nil {
		return fmt.Errorf("make a folder for all containers of the pod: %w", err)
	}
	return nil
}

// streams are the container's own: the command's output is its log.
func (p *pod) streams() *streams {
	if p == nil {
		return nil
	}
	return &streams{out: os.Stdout, errs: os.Stderr}
}

// exitCode is the container's.
func (p *pod) exitCode(r spec.Result) int {
	code := 0
	if r.ExitCode != nil {
		code = *r.ExitCode
	}
	switch {
	case p.over && r.Phase != spec.Error:
		return 0 // it did what it was there for; another code would make the whole pod a failed one
	case r.Phase == spec.Error && code == 0:
		return exitBroken
	}
	return code
}

// say writes a line to the container's log that is not the command's.
func (p *pod) say(line string) {
	// There is nobody to tell where even that fails.
	_, _ = fmt.Fprintln(p.stderr, spec.Voice+line)
}

// endingSignals end the command, gently, as whoever has made its image wants it: the first of them is handed on.
func endingSignals() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
}

// relayedSignals are handed on, and mean what the command takes them for.
func relayedSignals() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
}

// needless is told to a container that nothing needs any more.
type needless struct{}

func (needless) String() string { return "not needed any more" }
func (needless) Signal()        {}

// podSignal is told to the container: the first signal to end is handed on as it is, and a second one is the last.
func (g *group) podSignal(s os.Signal) {
	number, known := s.(syscall.Signal)
	ends := known && number != syscall.SIGHUP && number != syscall.SIGUSR1 && number != syscall.SIGUSR2 && number != syscall.SIGWINCH
	switch {
	case !known:
		g.over, g.job.pod.over = true, true
		g.terminate()
	case !ends:
		g.sendAll(number)
	case g.stopped:
		g.kill.Stop()
		g.sendAll(syscall.SIGKILL)
	default:
		g.stopped = true
		g.job.pod.ends.stopped()
		g.sendAll(number)
		g.kill.Reset(g.job.grace())
	}
}
