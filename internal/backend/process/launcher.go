package process

import (
	"context"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// Launcher runs executors somewhere else than directly on this machine: in containers of the task's own image. The task
// folder is there, too, at a path of its own; executors are told so, leave the environment as the image has it, and do
// not record themselves: the process that is watched is the launcher's.
type Launcher interface {
	// Folder is where the executor sees the task folder.
	Folder() string
	// Entrypoint gives what an image runs where a container names no command, args are the container's.
	Entrypoint(ctx context.Context, image string, args []string) ([]string, error)
	// User gives whom a container's command runs as, by what the container, the pod settings of its task and its image
	// say, in this order; empty is root. The image is fetched where it is not here.
	User(ctx context.Context, c program.Container, pod program.JSON) (string, error)
	// Command is the command line that runs an executor on a task and ends when it does.
	Command(task Launch) ([]string, error)
	// Rejoin is the command line that waits for the executor of a task folder whose launching process has gone, and that
	// runs nevertheless; nil where none does. What a dead one has left is removed.
	Rejoin(ctx context.Context, folder string) ([]string, error)
}

// Launch is a task that is ready to be launched.
type Launch struct {
	// Folder is the task folder on this machine.
	Folder string
	// Containers have their placeholders resolved.
	Containers []program.Container
	Mounts     []spec.Mount
	// Limits asks for the limits of containers to be enforced.
	Limits bool
}

// inside is where a task sees a file or folder of its task folder.
func (a *attempt) inside(name string) string {
	if a.b.cfg.Launcher != nil {
		return a.b.cfg.Launcher.Folder() + "/" + name
	}
	return a.folder + "/" + name
}

// executor is the command line that runs an executor on the attempt's folder.
func (a *attempt) executor() ([]string, error) {
	if a.b.cfg.Launcher == nil {
		return append(append([]string{}, a.b.cfg.Executor...), a.folder), nil
	}
	return a.b.cfg.Launcher.Command(Launch{
		Folder: a.folder, Containers: a.cmd.Body.Containers, Mounts: a.mounts, Limits: a.b.cfg.Limits,
	})
}

// rejoin takes up an executor whose launching process has gone; nil where there is none, or no launcher.
func (a *attempt) rejoin() (*process, error) {
	if a.b.cfg.Launcher == nil || a.state().Executor.PID == 0 {
		return nil, nil
	}
	argv, err := a.b.cfg.Launcher.Rejoin(a.b.ctx, a.folder)
	if err != nil || argv == nil {
		return nil, err
	}
	return a.watch(argv)
}

// executorEnv is the environment of an executor on this machine. It lives briefly and has little to do: no garbage
// collection, few threads.
func executorEnv() []string { return []string{"GOGC=off", "GOMAXPROCS=1"} }

// environ is the environment of the process that is started for the attempt; a launcher needs all of this program's.
func (a *attempt) environ() []string {
	if a.b.cfg.Launcher != nil {
		return a.b.cfg.Env
	}
	return executorEnv()
}
