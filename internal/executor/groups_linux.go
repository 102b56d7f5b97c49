package executor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// groups are the cgroups of a task's containers, opened while their folders can be seen.
type groups struct {
	byContainer map[string]*containerGroups
	opened      []*os.File
}

// containerGroups are those of one container.
type containerGroups struct {
	unified *os.File   // its folder, version 2
	tasks   []*os.File // their tasks files, version 1
	home    []*os.File // tasks files of the groups that this process is in
	events  []*os.File // where kills for want of memory are counted
}

func openGroups(byContainer map[string][]spec.Group) (*groups, error) {
	g := &groups{byContainer: map[string]*containerGroups{}}
	for name, list := range byContainer {
		c := &containerGroups{}
		g.byContainer[name] = c
		for _, group := range list {
			if err := g.open(c, group); err != nil {
				g.close()
				return nil, fmt.Errorf("limits of container %s: %w", name, err)
			}
		}
	}
	return g, nil
}

func (g *groups) open(c *containerGroups, group spec.Group) error {
	file := func(name string, flag int) (*os.File, error) {
		f, err := os.OpenFile(name, flag, 0)
		if err == nil {
			g.opened = append(g.opened, f)
		}
		return f, err
	}
	counter := "memory.oom_control"
	if group.Unified {
		counter = "memory.events"
		folder, err := file(group.Folder, os.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		c.unified = folder
	} else {
		tasks, err := file(filepath.Join(group.Folder, "tasks"), os.O_WRONLY)
		if err != nil {
			return err
		}
		home, err := file(filepath.Join(filepath.Dir(group.Folder), "tasks"), os.O_WRONLY)
		if err != nil {
			return err
		}
		c.tasks, c.home = append(c.tasks, tasks), append(c.home, home)
	}
	if !group.Memory {
		return nil
	}
	events, err := file(filepath.Join(group.Folder, counter), os.O_RDONLY)
	c.events = append(c.events, events)
	return err
}

// shareOwn watches the cgroup of the container that this process is in, and that all commands of the task are in with it.
func (g *groups) shareOwn(containers []spec.Container) {
	for _, name := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		events, err := os.Open(name)
		if err != nil {
			continue // of the other version, or not shown to containers
		}
		g.opened = append(g.opened, events)
		for _, c := range containers {
			g.byContainer[c.Name] = &containerGroups{events: []*os.File{events}}
		}
		return
	}
}

// around starts a process in a container's groups. With version 1 this thread enters them for as long as it takes; the
// child comes into being where the thread is.
func (g *groups) around(container string, attr *syscall.SysProcAttr, start func() (int, error)) (int, error) {
	c := g.byContainer[container]
	if c == nil {
		return start()
	}
	if c.unified != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.unified.Fd())
	}
	for i, tasks := range c.tasks {
		if _, err := tasks.WriteString("0"); err != nil {
			return 0, fmt.Errorf("enter the cgroup of container %s: %w", container, err)
		}
		defer func() {
			// If it fails this process shares the container's limit, and goes on.
			_, _ = c.home[i].WriteString("0")
		}()
	}
	return start()
}

// starved says whether a process of the container was killed for want of memory.
func (g *groups) starved(container string) bool {
	c := g.byContainer[container]
	if c == nil {
		return false
	}
	for _, f := range c.events {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			continue
		}
		text, err := io.ReadAll(f)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "oom_kill" && count != "0" {
				return true
			}
		}
	}
	return false
}

func (g *groups) close() {
	for _, f := range g.opened {
		_ = f.Close()
	}
}
